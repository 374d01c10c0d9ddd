"""How fast can many stages be at least and at most, without solving each? Quick bounds.

All are sums over downsets, so that a bound on the stage D' - D is a difference of two rows.
Coarse: the greedy order of leaving fast options, cut in a few places. Fine: the linear relaxation
from below, its rounding from above, and how many nodes must leave their fastest option.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .knapsack import hull, pareto
from .pairs import Degree

Floats = NDArray[np.float64]
Ints = NDArray[Any]


@dataclass(frozen=True)
class Move:
    """A class's next option on its lower hull: what a node pays and saves by taking it."""

    price: float
    saved: float
    cost: float
    of_class: int


@dataclass(frozen=True)
class Ladder:
    """Every class of a degree, its fastest option and the moves away from it, cheapest first.

    `by_saving` and `by_cost`: for each class that can save memory the most a node can save, the
    least that leaving its fastest option costs, and the class, in these two orders.
    """

    costs: list[float]
    sizes: list[float]
    moves: list[Move]
    lightest: list[float]
    by_saving: list[tuple[float, float, int]]
    by_cost: list[tuple[float, float, int]]

    @classmethod
    def of(cls, degree: Degree, kappa: float, in_flight: int) -> Ladder:
        """The ladder for κ (the time at d = 1 of a byte of weights) and microbatches in flight."""
        ladder = cls([], [], [], [], [], [])
        for c, options in enumerate(degree.classes):
            costs = [p + kappa * w for p, w, _, _ in options]
            sizes = [a * in_flight + b for _, _, a, b in options]
            corners = hull(costs, sizes)
            ladder.costs.append(costs[corners[0]])
            ladder.sizes.append(sizes[corners[0]])
            for a, b in pairwise(corners):
                cost, saved = costs[b] - costs[a], sizes[a] - sizes[b]
                ladder.moves.append(Move(cost / saved, saved, cost, c))
            front = pareto(costs, sizes)
            if len(front) > 1:
                saved = sizes[front[0]] - sizes[front[-1]]
                ladder.by_cost.append((saved, costs[front[1]] - costs[front[0]], c))
            ladder.lightest.append(min(sizes))
        ladder.moves.sort(key=lambda move: move.price)
        ladder.by_saving.extend(sorted(ladder.by_cost, key=lambda x: -x[0]))
        ladder.by_cost.sort(key=lambda x: x[1])
        return ladder


@dataclass(frozen=True)
class _Steps:
    """Running sums over downsets (rows) of steps in some order (columns, the first one zero)."""

    saved: Floats
    cost: Floats
    step_saved: Floats
    step_cost: Floats

    @classmethod
    def of(cls, counts: Floats, steps: list[tuple[float, float, int]]) -> _Steps:
        saved = np.array([s for s, _, _ in steps])
        cost = np.array([c for _, c, _ in steps])
        count = counts[:, [c for _, _, c in steps]]
        shape = (len(count), len(steps) + 1)
        running_saved, running_cost = np.zeros(shape), np.zeros(shape)
        np.cumsum(count * saved, axis=1, out=running_saved[:, 1:])
        np.cumsum(count * cost, axis=1, out=running_cost[:, 1:])
        return cls(running_saved, running_cost, saved, cost)

    def reach(self, lower: Ints, upper: Ints, need: Floats) -> tuple[Ints, Floats, Floats]:
        """Which step reaches `need` saved, and the cost and what is still needed before it."""
        low = np.zeros(len(need), np.int64)  # saved so far < need
        high = np.full(len(need), self.saved.shape[1] - 1)  # saved so far >= need, or the last
        while (high - low > 1).any():
            middle = (low + high) >> 1
            enough = self.saved[upper, middle] - self.saved[lower, middle] >= need
            high = np.where(enough, middle, high)
            low = np.where(enough, low, middle)
        left = need - (self.saved[upper, low] - self.saved[lower, low])
        return high - 1, self.cost[upper, low] - self.cost[lower, low], left


@dataclass(frozen=True)
class FineTable:
    """The fine bounds of one degree, κ and number in flight, over rows of class counts."""

    cost: Floats
    size: Floats
    lightest: Floats
    greedy: _Steps
    by_saving: _Steps
    by_cost: _Steps

    @classmethod
    def of(cls, ladder: Ladder, counts: Floats) -> FineTable:
        """The table; each row of `counts` has so many nodes of each class of the ladder."""
        return cls(
            counts @ np.array(ladder.costs),
            counts @ np.array(ladder.sizes),
            counts @ np.array(ladder.lightest),
            _Steps.of(counts, [(m.saved, m.cost, m.of_class) for m in ladder.moves]),
            _Steps.of(counts, [(saved, 1.0, c) for saved, _, c in ladder.by_saving]),
            _Steps.of(counts, [(1.0, cost, c) for _, cost, c in ladder.by_cost]),
        )

    def bounds(self, lower: Ints, upper: Ints, memory: float) -> tuple[Floats, Floats]:
        """Bounds from below and above on the least numerator of the stages lower -> upper."""
        cost = self.cost[upper] - self.cost[lower]
        excess = self.size[upper] - self.size[lower] - memory
        low, high = cost.copy(), cost.copy()
        heavy = self.lightest[upper] - self.lightest[lower] > memory
        low[heavy] = high[heavy] = np.inf
        tight = np.flatnonzero((excess > 0) & ~heavy)
        if tight.size:
            need, i, j = excess[tight], lower[tight], upper[tight]
            under, over = self._fill(i, j, need)
            low[tight] += np.maximum(under, self._fewest(i, j, need))
            high[tight] += over
        return low, high

    def _fill(self, i: Ints, j: Ints, need: Floats) -> tuple[Floats, Floats]:
        """The linear relaxation's extra cost of saving `need`, and that of rounding it up."""
        steps = self.greedy
        step, cost, left = steps.reach(i, j, need)
        times = left / steps.step_saved[step]
        price = steps.step_cost[step]
        enough = steps.saved[j, step + 1] - steps.saved[i, step + 1] >= need
        over = np.where(enough, cost + np.ceil(times) * price, np.inf)
        return (cost + times * price) * (1 - 1e-13), over

    def _fewest(self, i: Ints, j: Ints, need: Floats) -> Floats:
        """So many nodes must leave their fastest option, each at the least cost."""
        step, nodes, left = self.by_saving.reach(i, j, need)
        nodes = nodes + np.ceil(left / self.by_saving.step_saved[step] - 1e-9)
        step, cost, more = self.by_cost.reach(i, j, nodes)
        return (cost + more * self.by_cost.step_cost[step]) * (1 - 1e-13)


class CoarseTable:
    """Bounds for all degrees, variants and numbers in flight, at `cuts` places of the ladder.

    Rows are made when first asked for. `cost[row, cut, downset]` and `size[…]` are sums for the
    options after the moves before the cut; by Lagrange, for any selection that fits,
    cost >= cost_cut + price · (size_cut - memory) for any price between the moves at the cut.
    """

    def __init__(self, rows: int, cuts: int, downsets: int) -> None:
        self.cuts = cuts
        self.downsets = downsets
        self.made = np.zeros(rows, np.bool_)
        self.cost: Floats = np.empty(rows * (cuts + 1) * downsets)
        self.size: Floats = np.empty(rows * (cuts + 1) * downsets)
        self.price: Floats = np.zeros(rows * (cuts + 1))  # of the move before the cut
        self.next_price: Floats = np.zeros(rows * (cuts + 1))

    @staticmethod
    def bytes_of(rows: int, cuts: int, downsets: int) -> int:
        """Bytes when every row has been asked for."""
        return 16 * rows * (cuts + 1) * downsets

    def make(self, row: int, degree: Degree, ladder: Ladder) -> None:
        """Fill a row."""
        width = self.cuts + 1
        per_class = np.empty((len(ladder.costs), 2, width))
        costs, sizes = np.array(ladder.costs), np.array(ladder.sizes)
        ends = [round(len(ladder.moves) * cut / self.cuts) for cut in range(width)]
        for cut, (done, end) in enumerate(pairwise([0, *ends])):
            for move in ladder.moves[done:end]:
                costs[move.of_class] += move.cost
                sizes[move.of_class] -= move.saved
            per_class[:, 0, cut], per_class[:, 1, cut] = costs, sizes
            at = row * width + cut
            self.price[at] = ladder.moves[end - 1].price if end else 0.0
            after = ladder.moves[end].price if end < len(ladder.moves) else self.price[at]
            self.next_price[at] = after
        sums = per_class.reshape(len(costs), 2 * width).T @ degree.count.T
        where = slice(row * width * self.downsets, (row + 1) * width * self.downsets)
        self.cost[where], self.size[where] = sums[:width].ravel(), sums[width:].ravel()
        self.made[row] = True

    def bounds(self, rows: Ints, lower: Ints, upper: Ints, memory: float) -> tuple[Floats, Floats]:
        """Bounds from below and above on the least numerators; both infinite if none fits."""
        base = rows.astype(np.int64) * (self.cuts + 1)
        low = np.zeros(len(rows), np.int64) - 1  # does not fit
        high = np.full(len(rows), self.cuts)  # fits, or is the last
        for _ in range(self.cuts.bit_length()):
            middle = (low + high) >> 1
            fits = self._size(base + np.maximum(middle, 0), lower, upper) <= memory
            fits |= middle < 0
            keep = high - low > 1
            high = np.where(keep & fits, middle, high)
            low = np.where(keep & ~fits, middle, low)
        at = (base + high) * self.downsets
        cost = self.cost[at + upper] - self.cost[at + lower]
        fits = self.size[at + upper] - self.size[at + lower] <= memory
        over = np.where(fits, cost, np.inf)
        under = over.copy()
        tight = np.flatnonzero(fits & (high > 0))
        i, j = lower[tight], upper[tight]
        after = self._lagrange(base[tight] + high[tight], self.price, i, j, memory)
        before = self._lagrange(base[tight] + low[tight], self.next_price, i, j, memory)
        under[tight] = np.maximum(after, before)
        return under, over

    def _size(self, at: Ints, lower: Ints, upper: Ints) -> Floats:
        start = at * self.downsets
        return self.size[start + upper] - self.size[start + lower]

    def _lagrange(self, at: Ints, price: Floats, lower: Ints, upper: Ints, memory: float) -> Floats:
        start = at * self.downsets
        cost = self.cost[start + upper] - self.cost[start + lower]
        size = self.size[start + upper] - self.size[start + lower]
        return cost + price[at] * (size - memory) - 1e-12 * np.abs(cost)
