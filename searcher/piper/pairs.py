"""What do the borders of every possible stage cost? Additive sums over downsets, and pairs.

Sums over a stage D' - D are differences of sums over downsets. Traffic is not additive: an edge
from D past D' touches neither the stage nor its border, so it is taken out pair by pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .downsets import Lattice
from .model import LayerNode, LayerOption, Problem

Floats = NDArray[np.float64]
Ints = NDArray[Any]
_BLOCK_PAIRS = 2**17


class Degree:
    """The options of all nodes for one tensor-parallel degree, those that never win left out.

    `options[v]` of the v-th node (empty: the degree is not for it). Equal option lists are one
    class: `class_of[v]` (-1 without options), `classes[c]`, `count[i, c]` nodes of downset i.
    """

    def __init__(self, t: int, problem: Problem, member: Floats) -> None:
        self.t = t
        nodes = problem.graph.nodes
        self.options = [_useful(node, t) for node in nodes]
        self.same_sync = all(same_sync(options) for options in self.options)
        self.same_weights = all(len({o.parameters for o in x}) <= 1 for x in self.options)
        keys: dict[tuple[tuple[float, ...], ...], int] = {}
        self.class_of = [
            keys.setdefault(_key(options), len(keys)) if options else -1 for options in self.options
        ]
        self.classes = list(keys)
        onehot = np.zeros((len(nodes), len(keys)))
        for v, c in enumerate(self.class_of):
            if c >= 0:
                onehot[v, c] = 1.0
        self.count = member @ onehot
        self.fastest = self.sum([min(o[0] for o in key) for key in self.classes])
        self.weights = self.sum([min(o[1] for o in key) for key in self.classes])
        self.lacking = member @ np.array([float(not options) for options in self.options])

    def sum(self, per_class: list[float]) -> Floats:
        """For every downset the sum of a figure of its nodes."""
        return self.count @ np.array(per_class, dtype=np.float64)


def _useful(node: LayerNode, t: int) -> tuple[LayerOption, ...]:
    """The options that no other one beats for every data degree and number in flight."""
    kept: list[LayerOption] = []
    for option in node.options.get(t, ()):
        if any(_beats(other, option) for other in kept):
            continue
        kept = [other for other in kept if not _beats(option, other)]
        kept.append(option)
    return tuple(kept)


def _beats(a: LayerOption, b: LayerOption) -> bool:
    sync = all(
        have.get(key, 0.0) <= other.get(key, 0.0)
        for have, other in (
            (a.sync_forward, b.sync_forward),
            (a.sync_backward, b.sync_backward),
        )
        for key in {*have, *other}
    )
    return (
        sync
        and a.time <= b.time
        and a.parameters <= b.parameters
        and a.memory_a <= b.memory_a
        and a.memory_a + a.memory_b <= b.memory_a + b.memory_b
    )


def same_sync(options: tuple[LayerOption, ...]) -> bool:
    """Whether all options add the same traffic at every edge."""
    return all(
        o.sync_forward == options[0].sync_forward and o.sync_backward == options[0].sync_backward
        for o in options[1:]
    )


def _key(options: tuple[LayerOption, ...]) -> tuple[tuple[float, ...], ...]:
    return tuple((o.time, o.parameters, o.memory_a, o.memory_b) for o in options)


@dataclass(frozen=True)
class StageList:
    """The possible stages of one degree: nested pairs of downsets that may be of use.

    Those whose lower downset is i are at `start[i] : start[i + 1]`, by rising `upper`. `least`
    bounds the stage's time at d = 1 from below: fastest options and border traffic, without
    gradient sync; `extra` is how much more traffic other options can cause (None: none anywhere).
    `flight` is the largest possible number of microbatches in flight that fits into memory.
    """

    start: NDArray[np.int64]
    upper: NDArray[np.int32]
    least: Floats
    flight: NDArray[np.int32]
    extra: Floats | None

    def place(self, lower: int, upper: int) -> int:
        """The index of one stage in the list."""
        first, end = int(self.start[lower]), int(self.start[lower + 1])
        return first + int(np.searchsorted(self.upper[first:end], upper))


class Cutoff:
    """Which stages no plan within a time per sample can have, by device counts alone."""

    def __init__(self, problem: Problem, work: Floats, limit: float) -> None:
        self.devices = problem.devices
        self.limit = limit
        data = np.array([*problem.data_degrees(), problem.devices + 1])
        self.degree = data[np.searchsorted(data[:-1], np.arange(problem.devices + 3))]
        self.before = np.ceil(work / limit * (1 - 1e-9))
        self.after = np.ceil((work[-1] - work) / limit * (1 - 1e-9))

    def possible(self, t: int, lower: Ints, upper: Ints, least: Floats) -> NDArray[np.bool_]:
        """Whether the stage's devices and those that the rest needs are enough in sum."""
        replicas = np.minimum(least * ((1 - 1e-12) / self.limit), self.devices + 2)
        own = t * self.degree[np.maximum(np.ceil(replicas), 1).astype(np.int64)]
        return own + self.before[lower] + self.after[upper] <= self.devices


def list_stages(
    problem: Problem, lattice: Lattice, degree: Degree, flights: Ints, cutoff: Cutoff | None
) -> StageList:
    """All stages of a degree that fit into memory, lack no option and pass the cut-off."""
    low = _Traffic(problem, lattice, degree, min)
    high = None if degree.same_sync else _Traffic(problem, lattice, degree, max)
    light = _Lightest(problem, degree, flights)
    kept: list[tuple[Ints, Floats, Ints, Floats]] = []
    start = np.zeros(lattice.size + 1, np.int64)
    for first, end in blocks(lattice):
        lower, upper = _candidates(lattice, degree, light, cutoff, first, end)
        traffic = low.of(lower, upper)
        least = degree.fastest[upper] - degree.fastest[lower] + traffic
        if cutoff is not None:
            use = cutoff.possible(degree.t, lower, upper, least)
            lower, upper, least, traffic = lower[use], upper[use], least[use], traffic[use]
        extra = np.zeros(0) if high is None else high.of(lower, upper) - traffic
        kept.append((upper, least, light.most(lower, upper), extra))
        start[first + 1 : end + 1] = np.bincount(lower - first, minlength=end - first)
    kept.reverse()
    upper, least, flight, extra = (np.concatenate(part) for part in zip(*kept, strict=True))
    return StageList(np.cumsum(start), upper, least, flight, None if high is None else extra)


def _candidates(
    lattice: Lattice,
    degree: Degree,
    light: _Lightest,
    cutoff: Cutoff | None,
    first: int,
    end: int,
) -> tuple[Ints, Ints]:
    """Stages of a block of lower downsets that pass the tests that need no traffic."""
    upper = lattice.above[int(lattice.start[first]) : int(lattice.start[end])]
    lower = np.repeat(np.arange(first, end), np.diff(lattice.start[first : end + 1]))
    chosen = light.possible(lower, upper).nonzero()[0]
    lower, upper = lower[chosen], upper[chosen]
    use = degree.lacking[upper] == degree.lacking[lower]
    if cutoff is not None:
        least = degree.fastest[upper] - degree.fastest[lower]
        use &= cutoff.possible(degree.t, lower, upper, least)
    return lower[use], upper[use]


class _Lightest:
    """The least memory of stages, for every possible number of microbatches in flight."""

    def __init__(self, problem: Problem, degree: Degree, flights: Ints) -> None:
        self.memory = problem.memory
        self.flights = np.append(0, flights).astype(np.int32)
        self.downsets = len(degree.fastest)
        table = np.empty((len(flights), len(degree.classes)))
        for c, key in enumerate(degree.classes):
            each = [a * flights.astype(np.float64) + b for _, _, a, b in key]
            table[:, c] = np.min(each, axis=0)
        self.sizes: Floats = (table @ degree.count.T).ravel()
        # microbatches in flight in any stage that is not the last, at least
        self.others = 1 if problem.schedule == "1f1b" else 0

    def possible(self, lower: Ints, upper: Ints) -> NDArray[np.bool_]:
        """Whether each stage fits with the fewest microbatches in flight that it can have."""
        once, more = (
            self.sizes[n * self.downsets : (n + 1) * self.downsets] for n in (0, self.others)
        )
        fits = more[upper] - more[lower] <= self.memory
        last = np.flatnonzero(upper == self.downsets - 1)
        fits[last] = once[-1] - once[lower[last]] <= self.memory
        return fits

    def most(self, lower: Ints, upper: Ints) -> NDArray[np.int32]:
        """The largest number in flight with which each stage fits, 0 if none."""
        low = np.zeros(len(lower), np.int64)  # fits
        high = np.full(len(lower), len(self.flights))  # does not fit
        for _ in range(len(self.flights).bit_length()):
            middle = (low + high) >> 1
            at = np.maximum(middle - 1, 0) * self.downsets
            fits = self.sizes[at + upper] - self.sizes[at + lower] <= self.memory
            fits &= middle > low
            low = np.where(fits, middle, low)
            high = np.where(fits | (middle == low), high, middle)
        return self.flights[low]


def blocks(lattice: Lattice) -> Iterator[tuple[int, int]]:
    """Ranges of downsets of one size with not too many pairs, from the largest downsets down.

    The full downset, which is in no other, is left out.
    """
    sizes: NDArray[np.int64] = lattice.member.sum(axis=1)
    end = lattice.size - 1
    while end > 0:
        same = int(np.searchsorted(sizes, int(sizes[end - 1])))
        few = int(np.searchsorted(lattice.start, int(lattice.start[end]) - _BLOCK_PAIRS))
        first = min(end - 1, max(same, few))
        yield first, end
        end = first


class _Traffic:
    """Border traffic of the stages of one degree, in time at d = 1."""

    def __init__(self, problem: Problem, lattice: Lattice, degree: Degree, pick: object) -> None:
        assert pick in (min, max)
        choose = min if pick is min else max
        position = {node: v for v, node in enumerate(lattice.ids)}
        outside = ~lattice.member
        scale = 2.0 / problem.edge_bandwidth()
        self.into = np.zeros(lattice.size)
        self.out = np.zeros(lattice.size)
        self.past: dict[int, Floats] = {}
        leaves: dict[int, NDArray[np.bool_]] = {}
        for edge in problem.graph.edges:
            u, v = position[edge.source], position[edge.target]
            forward = [o.sync_forward.get(edge.source, 0.0) for o in degree.options[v]]
            backward = [o.sync_backward.get(edge.target, 0.0) for o in degree.options[u]]
            enter = scale * (edge.bytes + (choose(forward) if forward else 0.0))
            leave = scale * (edge.bytes + (choose(backward) if backward else 0.0))
            cut = lattice.member[:, u] & outside[:, v]
            self.into += enter * cut
            self.out += leave * cut
            self.past.setdefault(u, np.zeros(lattice.size))
            self.past[u] += (enter + leave) * outside[:, v]
            leaves[u] = leaves.get(u, np.zeros(lattice.size, np.bool_)) | cut
        self.border = list(leaves)
        stacked = np.array([leaves[u] for u in self.border], np.bool_)
        self.leaves = stacked.reshape(len(self.border), lattice.size)

    def of(self, lower: Ints, upper: Ints) -> Floats:
        """Traffic in and out of stages, those of one lower downset next to each other."""
        total = self.out[upper]
        total += self.into[lower]
        if not len(total):
            return total
        downsets, starts = np.unique(lower, return_index=True)
        ends = np.append(starts[1:], len(lower))
        for i, first, end in zip(downsets.tolist(), starts.tolist(), ends.tolist(), strict=True):
            row, above = total[first:end], upper[first:end]
            for b in np.flatnonzero(self.leaves[:, i]).tolist():
                row -= self.past[self.border[b]][above]
        return np.maximum(total, 0.0, out=total)
