"""Which option for every node of a stage costs least and fits? Multiple-choice knapsack, exact.

The solver fixes what a Lagrangian bound can fix, then merges Pareto frontiers class by class.
Equal nodes are one class with a multiplicity. Sizes are real numbers, never rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_MOST_COMBINATIONS = 2000


@dataclass(frozen=True)
class Choice:
    """`count` equal nodes, each of which takes one of the options with these costs and sizes."""

    costs: tuple[float, ...]
    sizes: tuple[float, ...]
    count: int = 1


@dataclass(frozen=True)
class Solution:
    """The least total cost, and for each choice how many of its nodes take each option."""

    cost: float
    taken: tuple[tuple[int, ...], ...]


def pareto(costs: Sequence[float], sizes: Sequence[float]) -> list[int]:
    """Indices of the options that no other beats, by rising cost and falling size."""
    kept: list[int] = []
    for i in sorted(range(len(costs)), key=lambda i: (costs[i], sizes[i])):
        if not kept or sizes[i] < sizes[kept[-1]]:
            kept.append(i)
    return kept


def hull(costs: Sequence[float], sizes: Sequence[float]) -> list[int]:
    """The Pareto options on the lower convex hull, by rising cost."""
    kept: list[int] = []
    for i in pareto(costs, sizes):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            before = (sizes[a] - sizes[b]) * (costs[i] - costs[b])
            after = (sizes[b] - sizes[i]) * (costs[b] - costs[a])
            if before > after:
                break
            kept.pop()
        kept.append(i)
    return kept


def solve(choices: Sequence[Choice], capacity: float) -> Solution | None:
    """The cheapest selection whose sizes add up to `capacity` at most; None if there is none."""
    fronts = [pareto(choice.costs, choice.sizes) for choice in choices]
    lightest = sum(c.count * c.sizes[f[-1]] for c, f in zip(choices, fronts, strict=True))
    if lightest > capacity:
        return None
    greedy, price = _greedy(choices, capacity)
    parts = [
        (c, Choice(choice.costs, choice.sizes, count))
        for c, choice in enumerate(choices)
        for count in _portions(choice.count, len(fronts[c]))
    ]
    best = _refine(choices, [(part, fronts[c]) for c, part in parts], capacity, greedy, price)
    if best is None:
        return greedy
    taken = [[0] * len(choice.costs) for choice in choices]
    for (c, _), row in zip(parts, best, strict=True):
        taken[c] = [n + m for n, m in zip(taken[c], row, strict=True)]
    exact = Solution(_cost(choices, taken), tuple(tuple(row) for row in taken))
    return exact if exact.cost < greedy.cost or not _fits(choices, greedy, capacity) else greedy


def _portions(count: int, options: int) -> list[int]:
    """A class of `count` nodes cut so that each part has few ways to share its options."""
    portions = [count]
    while math.comb(portions[0] + options - 1, options - 1) > _MOST_COMBINATIONS:
        portions = [p for whole in portions for p in (whole - whole // 2, whole // 2) if p]
        if portions[0] == 1:
            break
    return portions


def _greedy(choices: Sequence[Choice], capacity: float) -> tuple[Solution, float]:
    """A selection that fits, and the price of size at which the linear relaxation is optimal."""
    steps: list[tuple[float, int, int, int, int]] = []
    taken = [[0] * len(choice.costs) for choice in choices]
    size = 0.0
    for c, choice in enumerate(choices):
        corners = hull(choice.costs, choice.sizes)
        taken[c][corners[0]] = choice.count
        size += choice.count * choice.sizes[corners[0]]
        for k, (a, b) in enumerate(pairwise(corners)):
            saved = choice.sizes[a] - choice.sizes[b]
            steps.append(((choice.costs[b] - choice.costs[a]) / saved, c, k, a, b))
    price = 0.0
    for price_of_step, c, _, a, b in sorted(steps):
        if size <= capacity:
            break
        price = price_of_step
        saved = choices[c].sizes[a] - choices[c].sizes[b]
        moved = min(choices[c].count, max(1, math.ceil((size - capacity) / saved)))
        taken[c][a] -= moved
        taken[c][b] += moved
        size -= moved * saved
    return Solution(_cost(choices, taken), tuple(tuple(row) for row in taken)), price


def _cost(choices: Sequence[Choice], taken: Sequence[Sequence[int]]) -> float:
    return float(
        sum(n * c for choice, row in zip(choices, taken, strict=True)
            for n, c in zip(row, choice.costs, strict=True))
    )  # fmt: skip


def _fits(choices: Sequence[Choice], solution: Solution, capacity: float) -> bool:
    return capacity >= sum(
        n * s for choice, row in zip(choices, solution.taken, strict=True)
        for n, s in zip(row, choice.sizes, strict=True)
    )  # fmt: skip


def _refine(
    choices: Sequence[Choice],
    parts: Sequence[tuple[Choice, list[int]]],
    capacity: float,
    greedy: Solution,
    price: float,
) -> list[tuple[int, ...]] | None:
    """How the parts are shared in a selection no dearer than the greedy one, cheapest first."""
    limit = greedy.cost if _fits(choices, greedy, capacity) else np.inf
    penalties: list[list[float]] = []
    bound = -price * capacity
    for choice, front in parts:
        reduced = [choice.costs[o] + price * choice.sizes[o] for o in front]
        least = min(reduced)
        bound += choice.count * least
        penalties.append([r - least for r in reduced])
    slack = limit - bound
    slack += 1e-12 * (abs(bound) + abs(limit)) if np.isfinite(slack) else 0.0
    return _Search(parts, penalties, capacity, float(slack)).run()


class _Search:
    """Merging of frontiers: states are (cost, size, penalty) of the choices made so far."""

    def __init__(
        self,
        parts: Sequence[tuple[Choice, list[int]]],
        penalties: Sequence[Sequence[float]],
        capacity: float,
        slack: float,
    ) -> None:
        self.parts = parts
        self.penalties = penalties
        self.capacity = capacity
        self.slack = slack
        self.lightest = [choice.count * choice.sizes[front[-1]] for choice, front in parts]

    def run(self) -> list[tuple[int, ...]] | None:
        """The best selection within the slack, or None."""
        order = sorted(range(len(self.parts)), key=self._open_options)
        rest = float(sum(self.lightest))
        costs = np.zeros(1)
        sizes = np.zeros(1)
        penalty = np.zeros(1)
        history: list[tuple[int, Ints, list[tuple[int, ...]], Ints]] = []
        for c in order:
            rest -= self.lightest[c]
            rows, own_cost, own_size, own_penalty = self._combinations(c)
            new_cost = np.add.outer(costs, own_cost).ravel()
            new_size = np.add.outer(sizes, own_size).ravel()
            new_penalty = np.add.outer(penalty, own_penalty).ravel()
            room = self.capacity - rest + 1e-13 * self.capacity
            alive = np.flatnonzero((new_penalty <= self.slack) & (new_size <= room))
            if not alive.size:
                return None
            alive = alive[np.lexsort((new_size[alive], new_cost[alive]))]
            alive = alive[_undominated(new_size[alive])]
            costs, sizes, penalty = new_cost[alive], new_size[alive], new_penalty[alive]
            history.append((c, alive // len(rows), rows, alive % len(rows)))
        fits = np.flatnonzero(sizes <= self.capacity)
        return self._trace(history, int(fits[0])) if fits.size else None

    def _open_options(self, c: int) -> float:
        return sum(p <= self.slack for p in self.penalties[c])

    def _combinations(self, c: int) -> tuple[list[tuple[int, ...]], Floats, Floats, Floats]:
        """Every useful way to share the nodes of a class among its options."""
        choice, whole_front = self.parts[c]
        penalties = self.penalties[c]
        opened = [k for k in range(len(penalties)) if penalties[k] <= self.slack]
        rows: list[tuple[int, ...]] = [()]
        for _ in opened[:-1]:
            rows = [(*row, n) for row in rows for n in range(choice.count - sum(row) + 1)]
        rows = [(*row, choice.count - sum(row)) for row in rows]
        counts = np.array(rows, dtype=np.float64)
        front = [whole_front[k] for k in opened]
        costs = counts @ np.array([choice.costs[o] for o in front])
        sizes = counts @ np.array([choice.sizes[o] for o in front])
        penalty = counts @ np.array([penalties[k] for k in opened])
        full = [0] * len(choice.costs)
        spread: list[tuple[int, ...]] = []
        for row in rows:
            for o, n in zip(front, row, strict=True):
                full[o] = n
            spread.append(tuple(full))
        keep = np.flatnonzero(penalty <= self.slack)
        return [spread[k] for k in keep], costs[keep], sizes[keep], penalty[keep]

    def _trace(
        self, history: list[tuple[int, Ints, list[tuple[int, ...]], Ints]], state: int
    ) -> list[tuple[int, ...]]:
        taken: list[tuple[int, ...]] = [()] * len(self.parts)
        for c, parent, rows, row in reversed(history):
            taken[c] = rows[int(row[state])]
            state = int(parent[state])
        return taken


def _undominated(sizes: Floats) -> NDArray[np.bool_]:
    """Which states, sorted by cost, are smaller than every cheaper one."""
    least = np.minimum.accumulate(sizes)
    keep = np.ones(len(sizes), dtype=np.bool_)
    keep[1:] = sizes[1:] < least[:-1]
    return keep
