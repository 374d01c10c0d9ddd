"""Can a stage meet a time bound with a number of microbatches in flight? The inner problem.

For one stage, degrees and number in flight the options of its nodes are a multiple-choice
knapsack: least time within the memory. Bounds over many stages at once (`bounds`) answer nearly
always; where they cannot, `knapsack.solve` does, once for each question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .bounds import CoarseTable, FineTable, Ladder
from .downsets import Lattice
from .knapsack import Choice, Solution, solve
from .model import LayerOption, Problem
from .pairs import Cutoff, Degree, list_stages, same_sync

Floats = NDArray[np.float64]
Ints = NDArray[Any]
Verdicts = NDArray[np.int8]

NO, YES, UNSURE = 0, 1, 2
_DENSE_BYTES = 256 * 2**20
_COARSE_BYTES = 1024 * 2**20
_WORKSPACE = 128 * 2**20  # one block's arrays, states, one fine table
_FINE_CHUNK = 4096
_FINEST_CUTS = 8


@dataclass(frozen=True)
class Batch:
    """Possible stages of one tensor degree `ti`, an element of each array for each.

    Downsets `lower` and `upper`, the stage's index in the degree's list, the data degree's
    index and the microbatches in flight.
    """

    ti: int
    lower: Ints
    upper: Ints
    pair: Ints
    di: Ints
    in_flight: Ints

    def take(self, chosen: Ints) -> Batch:
        """The chosen elements alone."""
        arrays = (self.lower, self.upper, self.pair, self.di, self.in_flight)
        return Batch(self.ti, *(array[chosen] for array in arrays))


def stated_memory(problem: Problem, lattice: Lattice) -> int:
    """Bytes that the tables of the programme take at most, lattice included."""
    nodes, pairs = len(lattice.ids), lattice.pairs
    degrees, data = len(problem.tensor_degrees()), len(problem.data_degrees())
    flights = len(_possible_flights(problem))
    kinds = flights * _variants(problem)
    # of a downset: membership (bits and floats), class counts and traffic of each degree, sums
    downset = nodes * (9 + degrees * 24) + 8 * degrees * (6 + 3 * data) + 8 * flights
    tables = 16 * pairs * kinds * degrees
    if tables > _DENSE_BYTES:
        cuts = _cuts(kinds * degrees, lattice.size)
        tables = CoarseTable.bytes_of(kinds * degrees, cuts, lattice.size)
    stage = 4 + 8 + 4 + (0 if _uniform_sync(problem) else 8)
    return lattice.size * downset + pairs * (4 + stage * degrees) + 2 * tables + _WORKSPACE


class Inner:
    """The inner problem of every stage of a lattice.

    Costs are times at d = 1 ("numerators"): compute, plus κ·w for the gradients, with
    κ = d · seconds per byte. Where the options of every node have the same w, κ·w is a constant
    of the stage and one table serves every data degree (variant 0), else each has its own.
    With `within`, stages that only plans slower than that have may be left out.
    """

    def __init__(self, problem: Problem, lattice: Lattice, within: float | None = None) -> None:
        self.problem = problem
        self.lattice = lattice
        self.data = np.array(problem.data_degrees(), np.int64)
        self._data: Floats = self.data.astype(np.float64)
        member = lattice.member.astype(np.float64)
        self.degrees = [Degree(t, problem, member) for t in problem.tensor_degrees()]
        self.work = _least_work(member, self.degrees)
        self.kappa = [
            np.array([d * problem.sync_seconds(int(d), g.t) for d in self.data])
            for g in self.degrees
        ]
        self._flights = _possible_flights(problem)
        cutoff = None if within is None else Cutoff(problem, self.work, within)
        self.stages = [
            list_stages(problem, lattice, degree, self._flights, cutoff) for degree in self.degrees
        ]
        self.solved: dict[tuple[int, int, int, int, int], float] = {}
        self._solved_at: dict[tuple[int, int], list[tuple[int, int, int, float]]] = {}
        self._ladders: dict[int, Ladder] = {}
        self._variants = _variants(problem)
        kinds = self._variants * len(self._flights)
        rows = len(self.degrees) * kinds
        listed = sum(len(stages.upper) for stages in self.stages)
        self.is_dense = 16 * listed * kinds <= _DENSE_BYTES
        self._dense = [
            _DenseTable(rows, len(stages.upper) if self.is_dense else 0) for stages in self.stages
        ]
        cuts = _cuts(rows, lattice.size)
        self._coarse = CoarseTable(0 if self.is_dense else rows, cuts, lattice.size)

    def verdicts(self, limit: float, batch: Batch, *, quick: bool = False) -> Verdicts:
        """Can the time of each stage be at most `limit`? NO, YES or UNSURE (ask `exact`).

        `quick` leaves more of them unsure.
        """
        bound = self.room(limit, batch)
        verdict = np.full(len(bound), NO, np.int8)
        if self.is_dense:
            rows, table = self._dense_rows(batch), self._dense[batch.ti]
            low, high = table.low[rows, batch.pair], table.high[rows, batch.pair]
            return self._judge(batch, low, high, bound, verdict)
        fastest, flight = self.degrees[batch.ti].fastest, self.stages[batch.ti].flight
        hope = (fastest[batch.upper] - fastest[batch.lower] <= bound).nonzero()[0]
        hope = hope[batch.in_flight[hope] <= flight[batch.pair[hope]]]
        if not hope.size:
            return verdict
        few, few_bound = batch.take(hope), bound[hope]
        rows = self._coarse_rows(few)
        low, high = self._coarse.bounds(rows, few.lower, few.upper, self.problem.memory)
        verdict[hope] = self._judge(few, low, high, few_bound, np.zeros_like(hope, np.int8))
        unsure = np.flatnonzero(verdict == UNSURE)
        if unsure.size and not quick:
            few, few_bound = batch.take(unsure), bound[unsure]
            low, high = self._fine_bounds(few)
            verdict[unsure] = self._judge(few, low, high, few_bound, np.zeros_like(unsure, np.int8))
        return verdict

    def room(self, limit: float, batch: Batch) -> Floats:
        """How large the numerator without traffic may be for the stage's time to be `limit`."""
        degree, ti = self.degrees[batch.ti], batch.ti
        bound = (self._data * limit)[batch.di]
        if degree.same_weights:
            weights = degree.weights[batch.upper] - degree.weights[batch.lower]
            bound -= self.kappa[ti][batch.di] * weights
        bound -= self.stages[ti].least[batch.pair]
        bound += degree.fastest[batch.upper] - degree.fastest[batch.lower]
        return bound

    def least(self, batch: Batch) -> Floats:
        """The best known bound from below on the least numerators, as `exact` counts them."""
        if self.is_dense:
            rows = self._dense_rows(batch)
            return self._dense[batch.ti].low[rows, batch.pair]
        low, _ = self._fine_bounds(batch)
        variant = self._variant(batch)
        for i in np.unique(batch.lower).tolist():
            for one, j, y, value in self._solved_at.get((i, batch.ti), ()):
                same = (batch.lower == i) & (batch.upper == j)
                low[same & (variant == one) & (batch.in_flight == y)] = value
        return low

    def exact(self, batch: Batch, e: int) -> float:
        """The least numerator (without the least traffic) of stage e; infinite if none fits."""
        variant, y = int(self._variant(batch)[e]), int(batch.in_flight[e])
        i, j, pair = int(batch.lower[e]), int(batch.upper[e]), int(batch.pair[e])
        key = (batch.ti, variant, y, i, j)
        if key not in self.solved:
            solution, _ = self._solution(i, batch.ti, j, int(batch.di[e]), y)
            value = np.inf if solution is None else solution.cost
            self.solved[key] = value
            self._solved_at.setdefault((i, batch.ti), []).append((variant, j, y, value))
            if self.is_dense:
                row, table = self._dense_rows(batch)[e], self._dense[batch.ti]
                extra = self.stages[batch.ti].extra
                table.low[row, pair] = value
                table.high[row, pair] = value - (0.0 if extra is None else extra[pair])
        return self.solved[key]

    def selection(self, i: int, ti: int, j: int, di: int, y: int) -> dict[int, str] | None:
        """The option id of every node id in the best selection of one stage, if any fits."""
        solution, groups = self._solution(i, ti, j, di, y)
        if solution is None:
            return None
        chosen: dict[int, str] = {}
        for nodes, counts in zip(groups, solution.taken, strict=True):
            spread = [o for o, count in enumerate(counts) for _ in range(count)]
            for v, o in zip(nodes, spread, strict=True):
                chosen[v] = self.degrees[ti].options[v][o].id
        return {self.lattice.ids[v]: chosen[v] for v in sorted(chosen)}

    # One stage

    def _solution(
        self, i: int, ti: int, j: int, di: int, y: int
    ) -> tuple[Solution | None, list[list[int]]]:
        """The best selection of one stage, with the node positions of each of its choices."""
        inside = np.flatnonzero(self.lattice.member[j] & ~self.lattice.member[i]).tolist()
        ids = {self.lattice.ids[v] for v in inside}
        groups: dict[tuple[tuple[float, float], ...], list[int]] = {}
        for v in inside:
            groups.setdefault(self._choice(v, ids, ti, di, y), []).append(v)
        choices = [
            Choice(tuple(c for c, _ in key), tuple(s for _, s in key), len(nodes))
            for key, nodes in groups.items()
        ]
        return solve(choices, self.problem.memory), list(groups.values())

    def _choice(
        self, v: int, inside: set[int], ti: int, di: int, y: int
    ) -> tuple[tuple[float, float], ...]:
        """Cost and size of each option of a node, traffic above the least of its options too."""
        degree = self.degrees[ti]
        options = degree.options[v]
        kappa = 0.0 if degree.same_weights else float(self.kappa[ti][di])
        more = [0.0] * len(options)
        if not same_sync(options):
            more = self._more_traffic(options, v, inside)
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

    def _judge(
        self, batch: Batch, low: Floats, high: Floats, bound: Floats, verdict: Verdicts
    ) -> Verdicts:
        extra = self.stages[batch.ti].extra
        verdict[low <= bound] = UNSURE
        verdict[(high if extra is None else high + extra[batch.pair]) <= bound] = YES
        return verdict

    def _variant(self, batch: Batch) -> Ints:
        same = self.degrees[batch.ti].same_weights
        return np.zeros_like(batch.di) if same else batch.di

    def _row(self, ti: Any, variant: Any, y: Any) -> Any:
        """Row of a degree, variant and number in flight in the dense or the coarse tables."""
        gpipe = self.problem.schedule == "gpipe"
        column = cast(Any, np.searchsorted(self._flights, y)) if gpipe else y - 1
        return (ti * self._variants + variant) * len(self._flights) + column

    def _dense_rows(self, batch: Batch) -> Ints:
        rows: Ints = self._row(batch.ti, self._variant(batch), batch.in_flight)
        dense, stages = self._dense[batch.ti], self.stages[batch.ti]
        for row in _missing(rows, dense.made):
            lower = np.repeat(np.arange(self.lattice.size), np.diff(stages.start))
            table = self._fine_table(row, self.degrees[batch.ti].count)
            dense.fill(row, *table.bounds(lower, stages.upper, self.problem.memory))
        return dense.place[rows]

    def _coarse_rows(self, batch: Batch) -> Ints:
        rows: Ints = self._row(batch.ti, self._variant(batch), batch.in_flight)
        for row in _missing(rows, self._coarse.made):
            self._coarse.make(row, self.degrees[self._of_row(row)[0]], self._ladder(row))
        return rows

    def _of_row(self, row: int) -> tuple[int, int, int]:
        rest, column = divmod(row, len(self._flights))
        ti, variant = divmod(rest, self._variants)
        return ti, variant, int(self._flights[column])

    def _ladder(self, row: int) -> Ladder:
        if row not in self._ladders:
            ti, variant, y = self._of_row(row)
            same = self.degrees[ti].same_weights
            kappa = 0.0 if same else float(self.kappa[ti][variant])
            self._ladders[row] = Ladder.of(self.degrees[ti], kappa, y)
        return self._ladders[row]

    def _fine_table(self, row: int, counts: Floats) -> FineTable:
        return FineTable.of(self._ladder(row), counts)

    def _fine_bounds(self, batch: Batch) -> tuple[Floats, Floats]:
        """Fine bounds of single stages, in groups of one variant and number in flight."""
        rows: Ints = self._row(batch.ti, self._variant(batch), batch.in_flight)
        low, high = np.empty(len(rows)), np.empty(len(rows))
        order = np.argsort(rows, kind="stable")
        kinds, starts = np.unique(rows[order], return_index=True)
        count = self.degrees[batch.ti].count
        for row, same in zip(kinds.tolist(), np.split(order, starts[1:]), strict=True):
            for chosen in np.array_split(same, -(-len(same) // _FINE_CHUNK)):
                stages = np.zeros((len(chosen) + 1, count.shape[1]))
                stages[1:] = count[batch.upper[chosen]] - count[batch.lower[chosen]]
                table = self._fine_table(row, stages)
                upper = np.arange(1, len(chosen) + 1)
                bounds = table.bounds(np.zeros_like(upper), upper, self.problem.memory)
                low[chosen], high[chosen] = bounds
        return low, high


class _DenseTable:
    """Bounds on all listed stages, a row for each variant and number in flight asked for."""

    def __init__(self, rows: int, stages: int) -> None:
        self.made = np.zeros(rows, np.bool_)
        self.place = np.zeros(rows, np.int32)
        self.used = 0
        self.low: Floats = np.empty((4, stages))
        self.high: Floats = np.empty((4, stages))

    def fill(self, row: int, low: Floats, high: Floats) -> None:
        """Give a row its bounds."""
        if self.used == len(self.low):
            self.low = np.concatenate([self.low, np.empty_like(self.low)])
            self.high = np.concatenate([self.high, np.empty_like(self.high)])
        self.low[self.used], self.high[self.used] = low, high
        self.place[row], self.made[row] = self.used, True
        self.used += 1


def _missing(rows: Ints, made: NDArray[np.bool_]) -> list[int]:
    """The rows asked for that are not yet made."""
    absent = ~made[rows]
    return np.unique(rows[absent]).tolist() if absent.any() else []


def _least_work(member: Floats, degrees: list[Degree]) -> Floats:
    """For every downset the least device-time of its nodes; infinite if one has no option."""
    per_node = np.full(member.shape[1], np.inf)
    for degree in degrees:
        for v, options in enumerate(degree.options):
            times = [degree.t * option.time for option in options]
            per_node[v] = min([per_node[v], *times])
    impossible = ~np.isfinite(per_node)
    work = member @ np.where(impossible, 0.0, per_node)
    return np.where(member @ impossible > 0, np.inf, work)


def _possible_flights(problem: Problem) -> Ints:
    """All numbers of microbatches that can be in flight in a stage, ascending."""
    if problem.schedule == "gpipe":
        return np.unique([problem.microbatches // d for d in problem.data_degrees()])
    return np.arange(1, min(problem.devices, problem.microbatches) + 2)


def _variants(problem: Problem) -> int:
    """1 when the options of every node have the same weights, else one for each data degree."""
    for node in problem.graph.nodes:
        for options in node.options.values():
            if len({option.parameters for option in options}) > 1:
                return len(problem.data_degrees())
    return 1


def _uniform_sync(problem: Problem) -> bool:
    nodes = problem.graph.nodes
    return all(same_sync(options) for node in nodes for options in node.options.values())


def _cuts(rows: int, downsets: int) -> int:
    """How many cuts the coarse table can have within its bytes, at least two."""
    cuts = _FINEST_CUTS
    while cuts > 2 and CoarseTable.bytes_of(rows, cuts, downsets) > _COARSE_BYTES:
        cuts //= 2
    return cuts
