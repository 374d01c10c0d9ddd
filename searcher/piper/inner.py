"""Can a stage meet a time bound with a number of microbatches in flight? The inner problem.

For one stage, degrees and number in flight the options of its nodes are a multiple-choice
knapsack: least time within the memory. Quick bounds over many stages at once (the linear
relaxation from below, its rounding from above, and how many nodes must leave their fastest
option) answer nearly always; where they cannot, `knapsack.solve` does, once for each question.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .downsets import Lattice
from .knapsack import Choice, Solution, hull, pareto, solve
from .model import LayerOption, Problem
from .pairs import Degree, PairCosts

Floats = NDArray[np.float64]
Ints = NDArray[Any]
Verdicts = NDArray[np.int8]

NO, YES, UNSURE = 0, 1, 2
_DENSE_BYTES = 256 * 2**20
_CACHE_BYTES = 512 * 2**20


def stated_memory(problem: Problem, lattice: Lattice) -> int:
    """Bytes that the tables of the programme take at most, lattice included."""
    nodes, pairs = len(lattice.ids), lattice.pairs
    degrees, data = len(problem.tensor_degrees()), problem.data_degrees()
    flights = len(_possible_flights(problem, np.array(data, np.int64)))
    dense = 16 * pairs * degrees * flights
    # of a downset: membership (bits and floats), class counts and traffic of each degree, sums
    downset = nodes * (9 + degrees * 24) + 8 * degrees * (4 + 3 * len(data) + flights)
    caches = min(2 * dense, _DENSE_BYTES) + min(
        _CACHE_BYTES, 48 * lattice.size * nodes * degrees * flights
    )
    return lattice.size * downset + pairs * (8 + 16 * degrees) + caches


@dataclass(frozen=True)
class _Steps:
    """Running sums over downsets (rows) of steps in some order (columns, the first one zero)."""

    saved: Floats
    cost: Floats
    step_saved: Floats
    step_cost: Floats


@dataclass(frozen=True)
class _Bounds:
    """What the quick bounds of one (degree, variant, in flight) need."""

    cost: Floats
    size: Floats
    lightest: Floats
    greedy: _Steps
    by_saving: _Steps
    by_cost: _Steps

    @property
    def nbytes(self) -> int:
        steps = (self.greedy, self.by_saving, self.by_cost)
        return sum(s.saved.nbytes + s.cost.nbytes for s in steps) + 3 * self.cost.nbytes


class Inner:
    """The inner problem of every stage of a lattice.

    Costs are times at d = 1 ("numerators"): compute, plus κ·w for the gradients, with
    κ = d · seconds per byte. Where the options of every node have the same w, κ·w is a constant
    of the stage and one table serves every data degree (variant 0), else each has its own.
    """

    def __init__(self, problem: Problem, lattice: Lattice) -> None:
        self.problem = problem
        self.lattice = lattice
        self.data = np.array(problem.data_degrees(), np.int64)
        member = lattice.member.astype(np.float64)
        self.degrees = [Degree(t, problem, lattice, member) for t in problem.tensor_degrees()]
        self.costs = PairCosts(problem, lattice, self.degrees)
        self.kappa = [
            np.array([d * problem.sync_seconds(int(d), g.t) for d in self.data])
            for g in self.degrees
        ]
        self.solved: dict[tuple[int, int, int, int, int], float] = {}
        self._solved_in: dict[tuple[int, int], list[tuple[int, int, int, float]]] = {}
        self._bounds: OrderedDict[tuple[int, int, int], _Bounds] = OrderedDict()
        self._bytes = 0
        self._base: dict[tuple[int, int], tuple[Floats, Floats, Floats]] = {}
        self._lightest: dict[tuple[int, int], Floats] = {}
        variants = 1 if all(g.same_weights for g in self.degrees) else len(self.data)
        self._flights = _possible_flights(problem, self.data)
        shape = (len(self.degrees), variants, len(self._flights))
        self._row_of = np.full(shape, -1, np.int32)
        self._dense = _DenseTable(lattice.pairs)
        self.is_dense = 16 * lattice.pairs * self._row_of.size <= _DENSE_BYTES
        self._lower = np.repeat(np.arange(lattice.size), np.diff(lattice.start))

    def verdicts(
        self, limit: float, i: int, ti: int, above: Ints, pair: Ints, di: Ints, y: Ints
    ) -> Verdicts:
        """For stages from downset i to each of `above`: can their time be at most `limit`?

        `pair` are the pairs' indices in the lattice, `di` indices of data degrees, `y` numbers in
        flight. Answers are NO, YES or UNSURE (ask `exact`).
        """
        bound = self.room(limit, i, ti, above, pair, di)
        extra = self.costs.extra[ti]
        more = 0.0 if extra is None else extra[pair]
        if self.is_dense:
            rows = self._rows(ti, di, y)
            high = self._dense.high[rows, pair] + more
            low = self._dense.low[rows, pair]
            return _judge(low, high, bound)
        return self._sparse(i, ti, above, di, y, bound, more)

    def room(self, limit: float, i: int, ti: int, above: Ints, pair: Ints, di: Ints) -> Floats:
        """How large the numerator without traffic may be for the stage's time to be `limit`."""
        degree = self.degrees[ti]
        bound = self.data[di] * limit
        if degree.same_weights:
            bound -= self.kappa[ti][di] * (degree.weights[above] - degree.weights[i])
        bound -= self.costs.least[ti][pair] - (degree.fastest[above] - degree.fastest[i])
        return bound

    def exact(self, i: int, ti: int, j: int, pair: int, di: int, y: int) -> float:
        """The least numerator (without the least traffic) of one stage; infinite if none fits."""
        variant = 0 if self.degrees[ti].same_weights else di
        key = (ti, variant, y, i, j)
        value = self.solved.get(key)
        if value is None:
            solution, _ = self.solution(i, ti, j, di, y)
            value = np.inf if solution is None else solution.cost
            self.solved[key] = value
            row = self._row_of[ti, variant, self._column(y)] if self.is_dense else -1
            if row >= 0:
                extra = self.costs.extra[ti]
                self._dense.low[row, pair] = value
                self._dense.high[row, pair] = value - (0.0 if extra is None else extra[pair])
            self._solved_in.setdefault((i, ti), []).append((variant, j, y, value))
        return value

    def least(self, i: int, ti: int, above: Ints, pair: Ints, di: Ints, y: Ints) -> Floats:
        """The best known bound from below on the least numerators, as `exact` counts them."""
        if self.is_dense:
            rows = self._rows(ti, di, y)
            return self._dense.low[rows, pair]
        variant = np.zeros_like(di) if self.degrees[ti].same_weights else di
        low = np.empty(len(above))
        for one_variant, one_y in set(zip(variant.tolist(), y.tolist(), strict=True)):
            chosen = np.flatnonzero((variant == one_variant) & (y == one_y))
            lower = np.full(len(chosen), i)
            low[chosen] = self._bound_pairs(ti, one_variant, one_y, lower, above[chosen])[0]
        for one_variant, j, one_y, value in self._solved_in.get((i, ti), ()):
            low[(variant == one_variant) & (above == j) & (y == one_y)] = value
        return low

    def solution(
        self, i: int, ti: int, j: int, di: int, y: int
    ) -> tuple[Solution | None, list[list[int]]]:
        """The best selection of one stage, with the node positions of each of its choices."""
        degree = self.degrees[ti]
        inside = np.flatnonzero(self.lattice.member[j] & ~self.lattice.member[i])
        groups: dict[tuple[tuple[float, float], ...], list[int]] = {}
        for v in inside.tolist():
            groups.setdefault(self._choice(degree, v, inside, ti, di, y), []).append(v)
        choices = [
            Choice(tuple(c for c, _ in key), tuple(s for _, s in key), len(nodes))
            for key, nodes in groups.items()
        ]
        return solve(choices, self.problem.memory), list(groups.values())

    def selection(self, i: int, ti: int, j: int, di: int, y: int) -> dict[int, str] | None:
        """The option id of every node id in the best selection of one stage."""
        solution, groups = self.solution(i, ti, j, di, y)
        if solution is None:
            return None
        chosen: dict[int, str] = {}
        for nodes, counts in zip(groups, solution.taken, strict=True):
            spread = [o for o, count in enumerate(counts) for _ in range(count)]
            for v, o in zip(nodes, spread, strict=True):
                chosen[v] = self.degrees[ti].options[v][o].id
        return {self.lattice.ids[v]: chosen[v] for v in sorted(chosen)}

    def _choice(
        self, degree: Degree, v: int, inside: Ints, ti: int, di: int, y: int
    ) -> tuple[tuple[float, float], ...]:
        """Cost and size of each option of a node, traffic above the least of its options too."""
        options = degree.options[v]
        kappa = 0.0 if degree.same_weights else float(self.kappa[ti][di])
        more = [0.0] * len(options)
        if not _same(options):
            more = self._more_traffic(options, v, {self.lattice.ids[u] for u in inside.tolist()})
        return tuple(
            (o.time + kappa * o.parameters + m, o.memory_a * y + o.memory_b)
            for o, m in zip(options, more, strict=True)
        )

    def _more_traffic(
        self, options: tuple[LayerOption, ...], v: int, inside: set[int]
    ) -> list[float]:
        scale = 2.0 / self.problem.edge_bandwidth()
        node = self.lattice.ids[v]
        more = [0.0] * len(options)
        for edge in self.problem.graph.edges:
            if edge.target == node and edge.source not in inside:
                sync = [o.sync_forward.get(edge.source, 0.0) for o in options]
            elif edge.source == node and edge.target not in inside:
                sync = [o.sync_backward.get(edge.target, 0.0) for o in options]
            else:
                continue
            more = [m + scale * (s - min(sync)) for m, s in zip(more, sync, strict=True)]
        return more

    # Quick answers

    def _rows(self, ti: int, di: Ints, y: Ints) -> Ints:
        """Rows of the dense tables, which are made when first asked for."""
        variant = np.zeros_like(di) if self.degrees[ti].same_weights else di
        column = self._column(y)
        rows = self._row_of[ti, variant, column]
        missing = np.flatnonzero(rows < 0)
        if missing.size:
            asked = set(zip(variant[missing].tolist(), y[missing].tolist(), strict=True))
            for one_variant, one_y in sorted(asked):
                low, high = self._bound_pairs(
                    ti, one_variant, one_y, self._lower, self.lattice.above
                )
                row = self._dense.append(low, high)
                self._row_of[ti, one_variant, self._column(one_y)] = row
            rows = self._row_of[ti, variant, column]
        return rows

    def _column(self, y: Any) -> Any:
        """Index of a number in flight among the possible ones, which are 1, 2, … for 1F1B."""
        return y - 1 if self.problem.schedule == "1f1b" else np.searchsorted(self._flights, y)

    def _sparse(
        self,
        i: int,
        ti: int,
        above: Ints,
        di: Ints,
        y: Ints,
        bound: Floats,
        more: Floats | float,
    ) -> Verdicts:
        """As `verdicts`, without tables over all pairs: cheap tests first, then by groups."""
        verdict = np.full(len(above), NO, np.int8)
        variant = np.zeros_like(di) if self.degrees[ti].same_weights else di
        for one in np.unique(variant).tolist():
            chosen = np.flatnonzero(variant == one)
            cost, size_a, size_b = self._base_sums(ti, int(one))
            j = above[chosen]
            fast = cost[j] - cost[i]
            size = (size_a[j] - size_a[i]) * y[chosen] + (size_b[j] - size_b[i])
            extra = more if isinstance(more, float) else more[chosen]
            possible = fast <= bound[chosen]
            fits = size <= self.problem.memory
            verdict[chosen] = np.where(
                possible, np.where(fits & (fast + extra <= bound[chosen]), YES, UNSURE), NO
            )
        self._by_flight(i, ti, above, variant, y, bound, more, verdict)
        return verdict

    def _by_flight(
        self,
        i: int,
        ti: int,
        above: Ints,
        variant: Ints,
        y: Ints,
        bound: Floats,
        more: Floats | float,
        verdict: Verdicts,
    ) -> None:
        unsure = np.flatnonzero(verdict == UNSURE)
        for one_y in np.unique(y[unsure]).tolist():
            same = unsure[y[unsure] == one_y]
            light = self._lightest_sum(ti, int(one_y))
            heavy = light[above[same]] - light[i] > self.problem.memory
            verdict[same[heavy]] = NO
            same = same[~heavy]
            for one in np.unique(variant[same]).tolist():
                chosen = same[variant[same] == one]
                lower = np.full(len(chosen), i)
                low, high = self._bound_pairs(ti, int(one), int(one_y), lower, above[chosen])
                extra = more if isinstance(more, float) else more[chosen]
                verdict[chosen] = _judge(low, high + extra, bound[chosen])

    def _base_sums(self, ti: int, variant: int) -> tuple[Floats, Floats, Floats]:
        """Cost and both sizes of the fastest options, summed over downsets."""
        key = (ti, variant)
        if key not in self._base:
            degree = self.degrees[ti]
            kappa = 0.0 if degree.same_weights else float(self.kappa[ti][variant])
            best = [min((p + kappa * w, a + b, a, b) for p, w, a, b in k) for k in degree.classes]
            self._base[key] = (
                degree.sum([x[0] for x in best]),
                degree.sum([x[2] for x in best]),
                degree.sum([x[3] for x in best]),
            )
        return self._base[key]

    def _lightest_sum(self, ti: int, y: int) -> Floats:
        key = (ti, y)
        if key not in self._lightest:
            degree = self.degrees[ti]
            self._lightest[key] = degree.sum(
                [min(a * y + b for _, _, a, b in k) for k in degree.classes]
            )
        return self._lightest[key]

    def _bound_pairs(
        self, ti: int, variant: int, y: int, lower: Ints, upper: Ints
    ) -> tuple[Floats, Floats]:
        """Bounds from below and above on the least numerator of the stages lower -> upper."""
        table = self._table(ti, variant, y)
        cost = table.cost[upper] - table.cost[lower]
        excess = table.size[upper] - table.size[lower] - self.problem.memory
        low, high = cost.copy(), cost.copy()
        light = table.lightest[upper] - table.lightest[lower] > self.problem.memory
        low[light] = high[light] = np.inf
        tight = np.flatnonzero((excess > 0) & ~light)
        if tight.size:
            need, i, j = excess[tight], lower[tight], upper[tight]
            under, over = _fill(table.greedy, i, j, need)
            under = np.maximum(under, _fewest(table, i, j, need))
            low[tight] += under
            high[tight] += over
        return low, high

    def _table(self, ti: int, variant: int, y: int) -> _Bounds:
        key = (ti, variant, y)
        table = self._bounds.get(key)
        if table is not None:
            self._bounds.move_to_end(key)
            return table
        degree = self.degrees[ti]
        kappa = 0.0 if degree.same_weights else float(self.kappa[ti][variant])
        table = _make_bounds(degree, kappa, y)
        self._bounds[key] = table
        self._bytes += table.nbytes
        while self._bytes > _CACHE_BYTES and len(self._bounds) > 1:
            self._bytes -= self._bounds.popitem(last=False)[1].nbytes
        return table


class _DenseTable:
    """Two growing matrices, a row for each (degree, variant, in flight), a column a pair."""

    def __init__(self, pairs: int) -> None:
        self.used = 0
        self.low = np.empty((4, pairs))
        self.high = np.empty((4, pairs))

    def append(self, low: Floats, high: Floats) -> int:
        if self.used == len(self.low):
            self.low = np.concatenate([self.low, np.empty_like(self.low)])
            self.high = np.concatenate([self.high, np.empty_like(self.high)])
        self.low[self.used] = low
        self.high[self.used] = high
        self.used += 1
        return self.used - 1


def _possible_flights(problem: Problem, data: Ints) -> Ints:
    """All numbers of microbatches that can be in flight in a stage, ascending."""
    if problem.schedule == "gpipe":
        return np.unique(problem.microbatches // data)
    return np.arange(1, min(problem.devices, problem.microbatches) + 2)


def _judge(low: Floats, high: Floats, bound: Floats) -> Verdicts:
    verdict = np.where(low <= bound, UNSURE, NO).astype(np.int8)
    verdict[high <= bound] = YES
    return verdict


def _same(options: tuple[LayerOption, ...]) -> bool:
    first = options[0]
    return all(
        o.sync_forward == first.sync_forward and o.sync_backward == first.sync_backward
        for o in options[1:]
    )


def _make_bounds(degree: Degree, kappa: float, y: int) -> _Bounds:
    """Sums over downsets for the quick bounds: fastest options, and the ways to save memory."""
    base_cost: list[float] = []
    base_size: list[float] = []
    lightest: list[float] = []
    steps: list[tuple[float, float, float, int]] = []
    leaving: list[tuple[float, float, int]] = []
    for c, options in enumerate(degree.classes):
        costs = [p + kappa * w for p, w, _, _ in options]
        sizes = [a * y + b for _, _, a, b in options]
        corners = hull(costs, sizes)
        first = corners[0]
        base_cost.append(costs[first])
        base_size.append(sizes[first])
        lightest.append(min(sizes))
        for a, b in itertools.pairwise(corners):
            cost, saved = costs[b] - costs[a], sizes[a] - sizes[b]
            steps.append((cost / saved, saved, cost, c))
        front = pareto(costs, sizes)
        if len(front) > 1:
            saved = sizes[front[0]] - sizes[front[-1]]
            leaving.append((saved, costs[front[1]] - costs[front[0]], c))
    steps.sort()
    greedy = _sums(degree, [(s, cost, c) for _, s, cost, c in steps])
    leaving.sort(key=lambda x: -x[0])
    by_saving = _sums(degree, [(s, 1.0, c) for s, _, c in leaving])
    leaving.sort(key=lambda x: x[1])
    by_cost = _sums(degree, [(1.0, cost, c) for _, cost, c in leaving])
    return _Bounds(
        degree.sum(base_cost),
        degree.sum(base_size),
        degree.sum(lightest),
        greedy,
        by_saving,
        by_cost,
    )


def _sums(degree: Degree, steps: list[tuple[float, float, int]]) -> _Steps:
    saved = np.array([s for s, _, _ in steps])
    cost = np.array([c for _, c, _ in steps])
    count = degree.count[:, [c for _, _, c in steps]]
    shape = (len(count), len(steps) + 1)
    running_saved, running_cost = np.zeros(shape), np.zeros(shape)
    np.cumsum(count * saved, axis=1, out=running_saved[:, 1:])
    np.cumsum(count * cost, axis=1, out=running_cost[:, 1:])
    return _Steps(running_saved, running_cost, saved, cost)


def _reach(steps: _Steps, i: Ints, j: Ints, need: Floats) -> tuple[Ints, Floats, Floats]:
    """Which step reaches `need` saved, and cost and remaining need before it."""
    columns = steps.saved.shape[1]
    low = np.zeros(len(need), np.int64)  # saved[low] < need
    high = np.full(len(need), columns - 1)  # saved[high] >= need, or the last
    while True:
        middle = (low + high) >> 1
        if (high - low <= 1).all():
            break
        enough = steps.saved[j, middle] - steps.saved[i, middle] >= need
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle)
    left = need - (steps.saved[j, low] - steps.saved[i, low])
    return high - 1, steps.cost[j, low] - steps.cost[i, low], left


def _fill(steps: _Steps, i: Ints, j: Ints, need: Floats) -> tuple[Floats, Floats]:
    """The linear relaxation's extra cost of saving `need`, and that of rounding it up."""
    step, cost, left = _reach(steps, i, j, need)
    times = left / steps.step_saved[step]
    price = steps.step_cost[step]
    enough = steps.saved[j, step + 1] - steps.saved[i, step + 1] >= need
    over = np.where(enough, cost + np.ceil(times) * price, np.inf)
    return (cost + times * price) * (1 - 1e-13), over


def _fewest(table: _Bounds, i: Ints, j: Ints, need: Floats) -> Floats:
    """A bound from below: so many nodes must leave their fastest option, at the least each."""
    step, nodes, left = _reach(table.by_saving, i, j, need)
    nodes = nodes + np.ceil(left / table.by_saving.step_saved[step] - 1e-9)
    step, cost, more = _reach(table.by_cost, i, j, nodes)
    return (cost + more * table.by_cost.step_cost[step]) * (1 - 1e-13)
