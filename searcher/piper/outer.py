"""Is there a plan whose slowest stage takes at most T? The outer dynamic programme.

For a bound T the question needs no times in its states: for every downset D it keeps the Pareto
set of (devices k, sum of data degrees s) with which the nodes outside D can be run. More devices
are never worse, nor is a smaller s (it only lowers the number of microbatches in flight), so a
pair is kept only when no other is at most as large in both. The least work of D bounds the
devices that D still needs, which cuts states early. Downsets of one size do not nest, so they
are worked on together, in blocks, from the output end to the input.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .downsets import Lattice
from .inner import NO, UNSURE, YES, Batch, Inner
from .model import PlanStage, Problem
from .pairs import blocks

Ints = NDArray[Any]
_INTEGER = np.int32
_FAR = 2**30
_DEVICES, _REPLICAS, _PARENT, _UPPER, _TI, _DI, _FLIGHT = range(7)


@dataclass(frozen=True)
class Extensions:
    """Stages put before known states: rows of `_States.columns`, and the downset of each."""

    lower: Ints
    columns: Ints

    @classmethod
    def joined(cls, parts: list[Extensions]) -> Extensions:
        """All parts as one."""
        return cls(
            np.concatenate([part.lower for part in parts]),
            np.concatenate([part.columns for part in parts]),
        )

    def take(self, chosen: Ints) -> Extensions:
        """The chosen elements alone."""
        return Extensions(self.lower[chosen], self.columns[chosen])

    def pareto(self) -> Extensions:
        """Those that no other of the same downset beats, by downset and rising devices."""
        devices, replicas = self.columns[:, _DEVICES], self.columns[:, _REPLICAS]
        order = np.lexsort((replicas, devices, self.lower))
        # running minimum of s that begins anew with each downset
        fresh = replicas[order] - self.lower[order].astype(np.int64) * _FAR
        best = np.minimum.accumulate(fresh)
        keep = np.ones(len(order), np.bool_)
        keep[1:] = fresh[1:] < best[:-1]
        return self.take(order[keep])


class _States:
    """Pareto states of all downsets, those of one next to each other, found from the end."""

    def __init__(self, lattice: Lattice) -> None:
        self.first = np.zeros(lattice.size, np.int64)
        self.count = np.zeros(lattice.size, np.int64)
        self.least = np.full(lattice.size, _FAR, _INTEGER)
        self.columns = np.zeros((1024, 7), _INTEGER)
        self.used = 1
        self.columns[0, _PARENT] = -1
        self.count[-1], self.least[-1] = 1, 0

    def add(self, found: Extensions) -> None:
        """Append the states of some downsets, sorted by downset and rising devices."""
        at, count = self.used, len(found.lower)
        while at + count > len(self.columns):
            self.columns = np.concatenate([self.columns, np.zeros_like(self.columns)])
        self.columns[at : at + count] = found.columns
        downsets, first, counts = np.unique(found.lower, return_index=True, return_counts=True)
        self.first[downsets], self.count[downsets] = at + first, counts
        self.least[downsets] = found.columns[first, _DEVICES]
        self.used += count


class _Block:
    """Downsets first ≤ i < end of one size, with what has been found for them so far.

    `best[i - first, k]` is the least s known with at most k devices.
    """

    def __init__(self, first: int, end: int, most: Ints, devices: int) -> None:
        self.first = first
        self.end = end
        self.most = most
        self.best = np.full((end - first, devices + 1), _FAR, _INTEGER)
        self.parts: list[Extensions] = []

    def open(self, lower: Ints, devices: Ints, replicas: Ints) -> NDArray[np.bool_]:
        """Which pairs are within the downset's cap and smaller than all that is known."""
        row = lower - self.first
        inside = devices <= self.most[row]
        best = self.best[row, np.where(inside, devices, 0)]
        return inside & (replicas < best)

    def add(self, found: Extensions) -> None:
        """Add extensions that are open."""
        found = found.pareto()
        self.parts.append(found)
        row = found.lower - self.first
        at = (row, found.columns[:, _DEVICES])
        self.best[at] = np.minimum(self.best[at], found.columns[:, _REPLICAS])
        rows = np.unique(row)
        self.best[rows] = np.minimum.accumulate(self.best[rows], axis=1)


class Outer:
    """Threshold checks on one lattice of a problem, all with the same inner tables."""

    def __init__(self, problem: Problem, lattice: Lattice, within: float | None = None) -> None:
        self.problem = problem
        self.lattice = lattice
        self.inner = Inner(problem, lattice, within)
        self.checks = 0
        self.data = self.inner.data
        self.work = self.inner.work
        self.tensor = [degree.t for degree in self.inner.degrees]
        next_index = np.searchsorted(self.data, np.arange(problem.devices + 3))
        self._next_index = next_index.astype(_INTEGER)  # of the least degree >= the argument
        padded = np.append(self.data, problem.devices + 1)  # more than any plan has
        self._degree = padded.astype(_INTEGER)
        self._next_degree = padded[next_index].astype(_INTEGER)
        self._blocks = list(blocks(lattice))

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
        most = self.problem.devices - needed
        states = _States(self.lattice)
        for first, end in self._blocks:
            if most[first:end].max() < 1:
                continue
            block = _Block(first, end, most[first:end], self.problem.devices)
            self._fill(limit, block, states)
            if block.parts:
                states.add(Extensions.joined(block.parts).pareto())
        return self._plan(states) if states.count[0] else None

    def _fill(self, limit: float, block: _Block, states: _States) -> None:
        """Find the Pareto sets of a block's downsets from those of the downsets above them."""
        top = len(self._next_degree) - 1
        for ti, t in enumerate(self.tensor):
            stages = self.inner.stages[ti]
            start, end = int(stages.start[block.first]), int(stages.start[block.end])
            upper = stages.upper[start:end]
            counts = np.diff(stages.start[block.first : block.end + 1])
            replicas = stages.least[start:end] * ((1 - 1e-12) / limit)
            np.minimum(replicas, top, out=replicas)
            needed = np.ceil(replicas, out=replicas).astype(_INTEGER)
            np.maximum(needed, 1, out=needed)
            total = self._next_degree[needed] * t
            total += states.least[upper]
            chosen = np.flatnonzero(total <= np.repeat(block.most, counts))
            if chosen.size:
                lower = np.repeat(np.arange(block.first, block.end, dtype=_INTEGER), counts)
                pair = chosen + start
                self._extend(
                    limit, ti, lower[chosen], upper[chosen], pair, needed[chosen], block, states
                )

    def _extend(
        self,
        limit: float,
        ti: int,
        lower: Ints,
        above: Ints,
        pair: Ints,
        needed: Ints,
        block: _Block,
        states: _States,
    ) -> None:
        """Try every state of each of `above` with `needed` replicas and, where that fails, more."""
        counts = states.count[above]
        state = states.first[above]
        if int(counts.max()) > 1:
            which = np.repeat(np.arange(len(above)), counts)
            offset = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
            state = state[which] + offset
            lower, above, pair, needed = lower[which], above[which], pair[which], needed[which]
        needed = self._with_memory(needed, states.columns[state, _REPLICAS], ti, pair)
        di = self._next_index[needed]
        spare = self.problem.microbatches - (lower > 0)
        while state.size:
            d = self._degree[di]
            total = states.columns[state, _DEVICES] + self.tensor[ti] * d
            together = states.columns[state, _REPLICAS] + d
            keep = np.flatnonzero((together <= spare) & block.open(lower, total, together))
            if not keep.size:
                return
            lower, above, pair, state = lower[keep], above[keep], pair[keep], state[keep]
            di, total, together, spare = di[keep], total[keep], together[keep], spare[keep]
            y = self.in_flight(together - d[keep], d[keep])
            batch = Batch(ti, lower, above, pair, di, y)
            verdict = self.inner.verdicts(limit, batch)
            columns = (total, together, state, above, np.full_like(di, ti), di, y)
            good = np.flatnonzero(verdict == YES)
            if good.size:
                block.add(_extensions(lower, columns, good))
            self._decide(limit, batch, verdict, columns, block)
            again = np.flatnonzero(verdict == NO)
            lower, above, pair, state = lower[again], above[again], pair[again], state[again]
            di, spare = di[again] + 1, spare[again]

    def _with_memory(self, needed: Ints, replicas: Ints, ti: int, pair: Ints) -> Ints:
        """At least so many replicas that the microbatches in flight fit: s/d <= most - 1."""
        if self.problem.schedule == "gpipe":
            return needed
        others = np.maximum(self.inner.stages[ti].flight[pair] - 1, 1)
        return np.maximum(
            needed, np.minimum((replicas + others - 1) // others, len(self._next_index) - 1)
        )

    def _decide(
        self,
        limit: float,
        batch: Batch,
        verdict: NDArray[np.int8],
        columns: tuple[Ints, ...],
        block: _Block,
    ) -> None:
        """Solve unsure stages exactly, the most promising first, while they would help."""
        unsure = np.flatnonzero(verdict == UNSURE)
        if not unsure.size:
            return
        total, together = columns[_DEVICES], columns[_REPLICAS]
        room = self.inner.room(limit, batch.take(unsure))
        order = np.lexsort((together[unsure], total[unsure]))
        for n in order.tolist():
            one = unsure[n : n + 1]
            if not block.open(batch.lower[one], total[one], together[one])[0]:
                continue
            if self.inner.exact(batch, int(one[0])) <= room[n]:
                block.add(_extensions(batch.lower, columns, one))
            else:
                verdict[one] = NO

    def in_flight(self, replicas: Ints, d: Ints) -> Ints:
        """Microbatches in flight in a stage of d replicas before stages of `replicas` in sum."""
        if self.problem.schedule == "gpipe":
            return self.problem.microbatches // d
        return (replicas + d - 1) // d + 1

    def _plan(self, states: _States) -> list[PlanStage]:
        stages: list[PlanStage] = []
        lower, row = 0, int(states.first[0])
        while row > 0:
            _, _, parent, upper, ti, di, y = (int(x) for x in states.columns[row])
            chosen = self.inner.selection(lower, ti, upper, di, y)
            assert chosen is not None, "the programme accepted a stage that does not fit"
            d = int(self.data[di])
            stages.append(PlanStage(tuple(chosen), d, self.tensor[ti], chosen))
            lower, row = upper, parent
        return stages


def _extensions(lower: Ints, columns: tuple[Ints, ...], chosen: Ints) -> Extensions:
    rows = np.stack([column[chosen] for column in columns], axis=1)
    return Extensions(lower[chosen], rows.astype(_INTEGER))


def strictly_below(value: float) -> float:
    """The largest bound that counts as better than `value`: rounding must not."""
    return min(value * (1 - 1e-11), math.nextafter(value, 0.0))
