"""Which plan finishes a batch soonest, fill and drain of the pipeline counted?

Iteration time = max_i (N - d_i)·T_i + Σ_j d_j·T_j: the busiest stage works through its N/d
microbatches while one microbatch passes the others. For a bound on the first term the outer
programme minimises the second: states (k, s, Σ d·T), kept when no other is as small in all three.
The bound is searched best-first over intervals; the answer is within the tolerance of the best.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .evaluate import evaluate
from .inner import Batch
from .model import PlanStage
from .outer import Outer

Floats = NDArray[np.float64]
Ints = NDArray[Any]


@dataclass(frozen=True)
class Timed:
    """A plan with its iteration time and the two terms of it."""

    stages: tuple[PlanStage, ...]
    time: float
    steady: float
    fill: float


@dataclass
class _Labels:
    """Rows of states: columns devices, replicas, parent row, upper downset, ti, di, in flight."""

    first: list[int]
    count: list[int]
    columns: Ints
    fill: Floats
    used: int = 0

    def add(self, i: int, columns: Ints, fill: Floats) -> None:
        while self.used + len(fill) > len(self.fill):
            self.columns = np.concatenate([self.columns, np.zeros_like(self.columns)])
            self.fill = np.concatenate([self.fill, np.zeros_like(self.fill)])
        self.first[i], self.count[i] = self.used, len(fill)
        self.columns[self.used : self.used + len(fill)] = columns
        self.fill[self.used : self.used + len(fill)] = fill
        self.used += len(fill)


@dataclass
class _Found:
    """Extensions found for one downset, in parts."""

    columns: list[Ints] = field(default_factory=list[Ints])
    fill: list[Floats] = field(default_factory=list[Floats])


class IterationSearch:
    """The search for the least iteration time on the lattice of an outer programme."""

    def __init__(self, outer: Outer) -> None:
        self.outer = outer
        self.inner = outer.inner
        self.problem = outer.problem
        times = np.full(len(outer.lattice.ids), np.inf)
        for degree in self.inner.degrees:
            for v, options in enumerate(degree.options):
                times[v] = min([times[v], *(option.time for option in options)])
        self.rest = outer.lattice.member @ np.where(np.isfinite(times), times, 0.0)

    def run(self, start: tuple[PlanStage, ...]) -> Timed:
        """The best plan; `start` is any feasible one."""
        best = self._timed(start)
        low = self._least_steady()
        first = self._least_fill(self.outer.upper_bound() * self.problem.microbatches, math.inf)
        if first is None:
            return best
        best = min(best, first, key=lambda x: x.time)
        queue = [(low + first.fill, low, first.steady, first.fill)]
        while queue:
            bound, low, high, fill = heapq.heappop(queue)
            if bound >= best.time * (1 - self.problem.tolerance):
                break
            middle = (low + high) / 2
            if not low < middle < high:
                continue
            found = self._least_fill(middle, best.time - low)
            heapq.heappush(queue, (middle + fill, middle, high, fill))
            if found is not None:
                best = min(best, found, key=lambda x: x.time)
                below = min(middle, found.steady)
                heapq.heappush(queue, (low + found.fill, low, below, found.fill))
        return best

    def _timed(self, stages: tuple[PlanStage, ...]) -> Timed:
        judged = evaluate(self.problem, stages)
        n = self.problem.microbatches
        pairs = [(s.data_parallel, t) for s, t in zip(stages, judged.stage_times, strict=True)]
        steady = max((n - d) * t for d, t in pairs)
        return Timed(stages, judged.iteration_time, steady, math.fsum(d * t for d, t in pairs))

    def _least_steady(self) -> float:
        """No plan has a busiest stage below this: (N - d)·T >= (1 - d/N)·N·T."""
        n = self.problem.microbatches
        most = int(self.outer.data[-1])
        return max(0.0, (n - most) * self.outer.lower_bound())

    def _least_fill(self, steady: float, budget: float) -> Timed | None:
        """The plan of least fill whose steady term is at most `steady`, if below `budget`.

        Runs on lower bounds of stage times, made exact where the best plan uses them, until the
        best plan uses exact ones only.
        """
        while True:
            labels = self._programme(steady, budget)
            if labels is None:
                return None
            row = labels.first[0] + int(np.argmin(labels.fill[labels.first[0] : labels.used]))
            stages, exact = self._trace(labels, row)
            if exact:
                return self._timed(tuple(stages))

    def _trace(self, labels: _Labels, row: int) -> tuple[list[PlanStage], bool]:
        stages: list[PlanStage] = []
        exact = True
        lower = 0
        while labels.columns[row, 2] >= 0:
            _, _, parent, upper, ti, di, y = (int(x) for x in labels.columns[row])
            pair = self.inner.stages[ti].place(lower, upper)
            one = Batch(ti, *(np.array([x]) for x in (lower, upper, pair, di, y)))
            known = self.inner.least(one)[0]
            value = self.inner.exact(one, 0)
            exact = exact and value <= known * (1 + 1e-12)
            chosen = self.inner.selection(lower, ti, upper, di, y) if exact else None
            if chosen is not None:
                degrees = int(self.outer.data[di]), self.outer.tensor[ti]
                stages.append(PlanStage(tuple(chosen), *degrees, chosen))
            row, lower = parent, upper
        return stages, exact

    def _programme(self, steady: float, budget: float) -> _Labels | None:
        self.outer.checks += 1
        size = self.outer.lattice.size
        labels = _Labels([0] * size, [0] * size, np.zeros((64, 7), np.int32), np.zeros(64))
        labels.add(size - 1, np.array([[0, 0, -1, 0, 0, 0, 0]], np.int32), np.zeros(1))
        for i in range(size - 2, -1, -1):
            found = _Found()
            for ti in range(len(self.outer.tensor)):
                self._extend(i, ti, steady, budget, labels, found)
            if found.fill:
                columns, fill = np.concatenate(found.columns), np.concatenate(found.fill)
                keep = _pareto(columns[:, 0], columns[:, 1], fill)
                labels.add(i, columns[keep], fill[keep])
        return labels if labels.count[0] else None

    def _extend(
        self, i: int, ti: int, steady: float, budget: float, labels: _Labels, found: _Found
    ) -> None:
        stages, n = self.inner.stages[ti], self.problem.microbatches
        start, end = int(stages.start[i]), int(stages.start[i + 1])
        above = stages.upper[start:end]
        counts = np.array(labels.count)[above]
        which = np.repeat(np.arange(len(above)), counts)
        offset = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        state = np.array(labels.first)[above][which] + offset
        pair, above = which + start, above[which]
        t, least = self.outer.tensor[ti], stages.least[pair]
        fast_sum = self.inner.degrees[ti].fastest
        fastest = fast_sum[above] - fast_sum[i]
        di = np.zeros(len(state), np.int64)
        while state.size:
            d = self.outer.data[di]
            devices = labels.columns[state, 0] + t * d
            replicas = labels.columns[state, 1] + d
            fits = (devices <= self.problem.devices - (i > 0)) & (replicas <= n - (i > 0))
            cheap = labels.fill[state] + least + self.rest[i] < budget
            keep = np.flatnonzero(fits & cheap)
            above, pair, di, state, d = above[keep], pair[keep], di[keep], state[keep], d[keep]
            least = least[keep]
            y = self.outer.in_flight(labels.columns[state, 1], d)
            batch = Batch(ti, np.full_like(pair, i), above, pair, di, y)
            floor = -self.inner.room(0.0, batch)
            numerator = self.inner.least(batch)
            possible = np.isfinite(numerator)
            time = np.where(possible, numerator, 0.0) + floor
            fill = labels.fill[state] + time
            possible &= ((n - d) * time / d <= steady) & (fill + self.rest[i] < budget)
            good = np.flatnonzero(possible)
            if good.size:
                rows = (devices[keep], replicas[keep], state, above, np.full_like(di, ti), di, y)
                found.columns.append(np.stack([r[good] for r in rows], axis=1).astype(np.int32))
                found.fill.append(fill[good])
            more = np.ones(len(di), np.bool_)
            more[good] = numerator[good] > fastest[keep][good] * (1 + 1e-12)
            again = np.flatnonzero(more & (di + 1 < len(self.outer.data)))
            above, pair, state, least = above[again], pair[again], state[again], least[again]
            fastest = fastest[keep][again]
            di = di[again] + 1


def _pareto(devices: Ints, replicas: Ints, fill: Floats) -> Ints:
    """Indices of the states that no other one beats, one of each that are equal."""
    order = np.lexsort((fill, replicas, devices))
    k, s, c = devices[order], replicas[order], fill[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (k[1:] != k[:-1]) | (s[1:] != s[:-1])
    order, k, s, c = order[first], k[first], s[first], c[first]
    table = np.full((int(k.max()) + 2, int(s.max()) + 2), np.inf)
    table[k + 1, s + 1] = c
    table = np.minimum.accumulate(np.minimum.accumulate(table, axis=0), axis=1)
    return order[(c < table[k, s + 1]) & (c < table[k + 1, s])]
