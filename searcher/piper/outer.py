"""Is there a plan whose slowest stage takes at most T? The outer dynamic programme.

For a bound T the question needs no times in its states: for every downset D it keeps the Pareto
set of (devices k, sum of data degrees s) with which the nodes outside D can be run. More devices
are never worse, nor is a smaller s (it only lowers the number of microbatches in flight), so a
pair is kept only when no other is at most as large in both. The least work of D bounds the
devices that D still needs, which cuts states early. Rows run from the output end to the input.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .downsets import Lattice
from .inner import NO, UNSURE, YES, Inner
from .model import PlanStage, Problem

Ints = NDArray[Any]
_INTEGER = np.int32
_FAR = 2**30
_LEADERS = 64


@dataclass(frozen=True)
class _Stage:
    """A stage as indices: downsets, tensor degree, data degree, microbatches in flight."""

    lower: int
    upper: int
    ti: int
    di: int
    in_flight: int


@dataclass
class _States:
    """Pareto states of all downsets, those of one next to each other, found from the end."""

    first: Ints
    count: Ints
    least: Ints
    devices: Ints
    replicas: Ints
    parent: list[int] = field(default_factory=list[int])
    made: list[_Stage | None] = field(default_factory=list[_Stage | None])

    @classmethod
    def of(cls, lattice: Lattice) -> _States:
        zeros = np.zeros(lattice.size, np.int64)
        least = np.full(lattice.size, _FAR, np.int32)
        room = np.zeros(1024, np.int32)
        return cls(zeros, zeros.copy(), least, room, room.copy())

    def add(self, i: int, found: list[tuple[int, int, int, _Stage | None]]) -> None:
        """Give downset i its states: (devices, replicas, parent state, stage)."""
        at = len(self.made)
        while at + len(found) > len(self.devices):
            self.devices = np.concatenate([self.devices, np.zeros_like(self.devices)])
            self.replicas = np.concatenate([self.replicas, np.zeros_like(self.replicas)])
        self.first[i], self.count[i] = at, len(found)
        if found:
            self.least[i] = min(devices for devices, _, _, _ in found)
        for n, (devices, replicas, parent, stage) in enumerate(found):
            self.devices[at + n], self.replicas[at + n] = devices, replicas
            self.parent.append(parent)
            self.made.append(stage)


class _Front:
    """The Pareto set of one downset while it grows: least s for at most k devices."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.best = np.full(most + 1, _FAR, np.int32)
        self.states: dict[int, tuple[int, int, int, _Stage | None]] = {}

    def undominated(self, devices: Ints, replicas: Ints) -> NDArray[np.bool_]:
        """Which pairs are within the cap and smaller than all that is known."""
        inside = devices <= self.most
        return inside & (replicas < self.best[np.minimum(devices, self.most)])

    def add(self, devices: int, replicas: int, parent: int, stage: _Stage) -> None:
        if replicas >= self.best[devices]:
            return
        view = self.best[devices:]
        np.minimum(view, replicas, out=view)
        self.states[devices] = (devices, replicas, parent, stage)

    def result(self) -> list[tuple[int, int, int, _Stage | None]]:
        """The states that are still undominated, by rising devices."""
        kept: list[tuple[int, int, int, _Stage | None]] = []
        for devices in sorted(self.states):
            state = self.states[devices]
            if not kept or state[1] < kept[-1][1]:
                kept.append(state)
        return kept


class Outer:
    """Threshold checks on one lattice of a problem, all with the same inner tables."""

    def __init__(self, problem: Problem, lattice: Lattice) -> None:
        self.problem = problem
        self.lattice = lattice
        self.inner = Inner(problem, lattice)
        self.checks = 0
        self.data = self.inner.data
        self.tensor = [degree.t for degree in self.inner.degrees]
        upto = np.arange(problem.devices + 3)
        next_index = np.searchsorted(self.data, upto)
        self._next_index = next_index.astype(np.int32)  # of the least degree >= the argument
        padded = np.append(self.data, problem.devices + 1)  # more than any plan has
        self._degree = padded.astype(_INTEGER)
        self._next_degree = padded[next_index].astype(_INTEGER)
        self.work = self._least_work()

    def _least_work(self) -> NDArray[np.float64]:
        """For every downset the least device-time of its nodes; infinite if one has no option."""
        per_node = np.full(len(self.lattice.ids), np.inf)
        for degree in self.inner.degrees:
            for v, options in enumerate(degree.options):
                times = [degree.t * option.time for option in options]
                per_node[v] = min([per_node[v], *times])
        impossible = ~np.isfinite(per_node)
        work = self.lattice.member @ np.where(impossible, 0.0, per_node)
        return np.where(self.lattice.member @ impossible, np.inf, work)

    def pair(self, lower: int, upper: int) -> int:
        """The index of a nested pair of downsets."""
        start, end = self.lattice.start[lower], self.lattice.start[lower + 1]
        return int(start + np.searchsorted(self.lattice.above[start:end], upper))

    def lower_bound(self) -> float:
        """A time per sample that no plan can beat: all devices busy with the least work."""
        return float(self.work[-1]) / self.problem.devices

    def upper_bound(self) -> float:
        """A time per sample that no stage reaches, whatever its degrees and options."""
        total = 0.0
        for degree, kappa in zip(self.inner.degrees, self.inner.kappa, strict=True):
            weight = float(kappa.max()) if len(kappa) else 0.0
            nodes = sum(
                max((o.time + weight * o.parameters for o in options), default=0.0)
                for options in degree.options
            )
            total = max(total, nodes)
        sync = [
            max(list(o.sync_forward.values()) + list(o.sync_backward.values()), default=0.0)
            for node in self.problem.graph.nodes
            for options in node.options.values()
            for o in options
        ]
        traffic = sum(e.bytes + max(sync, default=0.0) for e in self.problem.graph.edges)
        return 1.0 + 2 * (total + 4 * traffic / self.problem.edge_bandwidth())

    def check(self, limit: float) -> list[PlanStage] | None:
        """Stages, input first, of a plan in which none takes more than `limit`; None if none."""
        self.checks += 1
        if not self.work[-1] <= self.problem.devices * limit * (1 + 1e-9):
            return None
        needed = np.ceil(self.work / limit * (1 - 1e-9)).astype(np.int64)
        needed[1:] = np.maximum(needed[1:], 1)
        states = _States.of(self.lattice)
        states.add(self.lattice.size - 1, [(0, 0, -1, None)])
        for i in range(self.lattice.size - 2, -1, -1):
            front = _Front(self.problem.devices - int(needed[i]))
            if front.most >= 1:
                self._row(limit, i, front, states)
                states.add(i, front.result())
        if not states.count[0]:
            return None
        return self._plan(states)

    def _row(self, limit: float, i: int, front: _Front, states: _States) -> None:
        """Find the Pareto set of downset i from those of the downsets above it."""
        start, end = int(self.lattice.start[i]), int(self.lattice.start[i + 1])
        above = self.lattice.above[start:end]
        least = states.least[above]
        top = float(len(self._next_degree) - 1)
        for ti, t in enumerate(self.tensor):
            replicas = self.inner.costs.least[ti][start:end] * ((1 - 1e-12) / limit)
            np.minimum(replicas, top, out=replicas)
            needed = np.ceil(replicas, out=replicas).astype(np.int32)
            needed[needed == 0] = 1
            total = self._next_degree[needed] * t
            total += least
            chosen = np.flatnonzero(total <= front.most)
            if chosen.size > 4 * _LEADERS:
                order = np.argpartition(total[chosen], _LEADERS)
                parts = [chosen[order[:_LEADERS]], chosen[order[_LEADERS:]]]
            else:
                parts = [chosen]
            for part in parts:
                if part.size:
                    di = self._next_index[needed[part]]
                    self._extend(limit, i, ti, above[part], part + start, di, front, states)

    def _extend(
        self,
        limit: float,
        i: int,
        ti: int,
        above: Ints,
        pair: Ints,
        di: Ints,
        front: _Front,
        states: _States,
    ) -> None:
        """Try every state of each of `above` with data degree `di` and, where that fails, more."""
        counts = states.count[above]
        state = states.first[above]
        if int(counts.max()) > 1:
            which = np.repeat(np.arange(len(above)), counts)
            offset = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
            state = state[which] + offset
            above, pair, di = above[which], pair[which], di[which]
        devices, replicas = states.devices[state], states.replicas[state]
        t = self.tensor[ti]
        spare = self.problem.microbatches - (1 if i else 0)
        while state.size:
            d = self._degree[di]
            total, together = devices + t * d, replicas + d
            keep = np.flatnonzero((together <= spare) & front.undominated(total, together))
            if not keep.size:
                return
            above, pair, di, state = above[keep], pair[keep], di[keep], state[keep]
            devices, replicas, d = devices[keep], replicas[keep], d[keep]
            y = self.in_flight(replicas, d)
            verdict = self.inner.verdicts(limit, i, ti, above, pair, di, y)
            self._accept(i, ti, np.flatnonzero(verdict == YES), above, state, di, y, states, front)
            for e in self._unsure(verdict, devices + t * d, replicas + d, front):
                if not front.undominated(devices[e] + t * d[e], replicas[e] + d[e]):
                    continue
                j, p, n, flight = int(above[e]), int(pair[e]), int(di[e]), int(y[e])
                one = np.array([e])
                bound = self.inner.room(limit, i, ti, above[one], pair[one], di[one])
                if self.inner.exact(i, ti, j, p, n, flight) <= bound[0]:
                    self._accept(i, ti, one, above, state, di, y, states, front)
                else:
                    verdict[e] = NO
            again = np.flatnonzero(verdict == NO)
            above, pair, state = above[again], pair[again], state[again]
            devices, replicas = devices[again], replicas[again]
            di = di[again] + 1

    def in_flight(self, replicas: Ints, d: Ints) -> Ints:
        """Microbatches in flight in a stage of d replicas before stages of `replicas` in sum."""
        if self.problem.schedule == "gpipe":
            return self.problem.microbatches // d
        return (replicas + d - 1) // d + 1

    def _unsure(
        self, verdict: NDArray[np.int8], total: Ints, together: Ints, front: _Front
    ) -> list[int]:
        unsure = np.flatnonzero(verdict == UNSURE)
        unsure = unsure[front.undominated(total[unsure], together[unsure])]
        order = np.lexsort((together[unsure], total[unsure]))
        return unsure[order].tolist()

    def _accept(
        self,
        i: int,
        ti: int,
        accepted: Ints,
        above: Ints,
        state: Ints,
        di: Ints,
        y: Ints,
        states: _States,
        front: _Front,
    ) -> None:
        """Add the Pareto set of the accepted extensions to the front."""
        if not accepted.size:
            return
        d = self._degree[di[accepted]]
        total = states.devices[state[accepted]] + self.tensor[ti] * d
        together = states.replicas[state[accepted]] + d
        order = np.lexsort((together, total))
        best = np.minimum.accumulate(together[order])
        first = np.ones(len(order), np.bool_)
        first[1:] = together[order][1:] < best[:-1]
        for n in order[first].tolist():
            e = int(accepted[n])
            stage = _Stage(i, int(above[e]), ti, int(di[e]), int(y[e]))
            front.add(int(total[n]), int(together[n]), int(state[e]), stage)

    def _plan(self, states: _States) -> list[PlanStage]:
        state = int(states.first[0])
        stages: list[PlanStage] = []
        while (made := states.made[state]) is not None:
            chosen = self.inner.selection(made.lower, made.ti, made.upper, made.di, made.in_flight)
            assert chosen is not None, "the programme accepted a stage that does not fit"
            stages.append(
                PlanStage(tuple(chosen), int(self.data[made.di]), self.tensor[made.ti], chosen)
            )
            state = states.parent[state]
        return stages


def strictly_below(value: float) -> float:
    """The largest bound that counts as better than `value`: rounding must not."""
    return min(value * (1 - 1e-11), math.nextafter(value, 0.0))
