"""What do the borders of every possible stage cost? Additive sums over downsets, and pairs.

Sums over a stage D' - D are differences of sums over downsets. Traffic is not additive: an edge
from D past D' touches neither the stage nor its border, so it is taken out pair by pair.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .downsets import Lattice
from .model import LayerNode, LayerOption, Problem

Floats = NDArray[np.float64]


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


class PairCosts:
    """For each degree and nested pair a lower bound of the stage's time at d = 1.

    `least[ti][pair]`: fastest options plus border traffic, without gradient sync; infinite where
    a node lacks the degree. `extra[ti]`: how much more traffic other options can cause, None when
    the options of every node cause the same.
    """

    def __init__(self, problem: Problem, lattice: Lattice, degrees: list[Degree]) -> None:
        self.least: list[Floats] = []
        self.extra: list[Floats | None] = []
        for degree in degrees:
            low = _Traffic(problem, lattice, degree, min)
            high = None if degree.same_sync else _Traffic(problem, lattice, degree, max)
            least = np.empty(lattice.pairs)
            extra = None if high is None else np.empty(lattice.pairs)
            for i in range(lattice.size):
                row = slice(int(lattice.start[i]), int(lattice.start[i + 1]))
                above = lattice.above[row]
                traffic = low.row(i, above)
                if high is not None and extra is not None:
                    extra[row] = high.row(i, above) - traffic
                least[row] = degree.fastest[above] - degree.fastest[i] + traffic
                if degree.lacking[-1]:
                    least[row][degree.lacking[above] != degree.lacking[i]] = np.inf
            self.least.append(least)
            self.extra.append(extra)


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

    def row(self, i: int, above: NDArray[np.int32]) -> Floats:
        """Traffic in and out of the stages from downset i to each of `above`."""
        total = self.out[above]
        total += self.into[i]
        for b in np.flatnonzero(self.leaves[:, i]):
            total -= self.past[self.border[int(b)]][above]
        return np.maximum(total, 0.0, out=total)
