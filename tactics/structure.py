"""How do activations flow between weights? What finds pairs, experts and attention stands on this.

Only the forward computation counts: what a loss, or the first product of some parameter, depends
on. Gradients look like products with weights too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ..engine.graph import ARGUMENT, CARRY_KINDS, RESULT, Graph
from ..engine.roles import PARAM, Roles, sources_of, targets_of
from ..partir_dialect.rules.base import Kind

PRODUCTS = frozenset({"stablehlo.dot_general"})


@dataclass(frozen=True, slots=True)
class Flow:
    """Where a tiled dimension gets to: the row weights, the (row product, contracted factor) pairs
    that absorb it, the (value, dim) places on the way, and, if it cannot be kept, the op that stops
    it and why."""

    rows: frozenset[int]
    absorbed: frozenset[tuple[int, int]]
    places: frozenset[tuple[int, int]]
    stopped_at: int | None = None
    reason: str = ""

    @property
    def clean(self) -> bool:
        """Whether the dimension ends in row products and nowhere else."""
        return self.stopped_at is None and not self.reason and bool(self.rows)


def places_of(graph: Graph, op: int, factor: int, dim: int) -> list[tuple[int, int]]:
    """(value, dimension) of the results in which a factor of an operand's dimension goes on; a loop
    carry goes on in the body and behind the loop."""
    if graph.kinds[op] in CARRY_KINDS:
        return [(value, dim) for value in targets_of(graph, op)]
    return [(graph.results[op][r], d) for r, d in graph.op_shapes[op].where_out[factor]]


class Structure:
    """The weights of a graph and how activations flow between them; computed when first asked."""

    def __init__(self, graph: Graph, roles: Roles) -> None:
        self.graph = graph
        self.roles = roles

    # --- what depends on what ---------------------------------------------------------------------

    @cached_property
    def _origin(self) -> tuple[list[bool], list[int]]:
        """For each value: whether data (any argument that is no parameter) is in it, and the
        largest parameter in it, or -1."""
        graph = self.graph
        data = [False] * len(graph.shapes)
        weight = [-1] * len(graph.shapes)
        for a, argument in enumerate(graph.arguments):
            if self.roles.roles[a] == PARAM:
                weight[argument.value] = a
            else:
                data[argument.value] = True
        changed = True
        while changed:  # once more for each loop that carries a value round
            changed = False
            for op, kind in enumerate(graph.kinds):
                if kind == ARGUMENT:
                    continue
                operands = sources_of(graph, op)
                any_data = any(data[v] for v in operands)
                largest = max((weight[v] for v in operands), key=self.elements, default=-1)
                for result in graph.results[op]:
                    if (data[result], weight[result]) != (any_data, largest):
                        data[result], weight[result] = any_data, largest
                        changed = True
        return data, weight

    @property
    def data(self) -> list[bool]:
        """For each value, whether any argument that is no parameter is in it."""
        return self._origin[0]

    def elements(self, argument: int) -> int:
        if argument < 0:
            return -1
        return prod(self.graph.shapes[self.graph.arguments[argument].value])

    def _is_matrix(self, argument: int) -> bool:
        """Whether it is a parameter of rank 2 or more; scales and biases make no products."""
        return argument >= 0 and len(self.graph.shapes[self.graph.arguments[argument].value]) >= 2

    def weight_of(self, value: int) -> int:
        """The parameter that the value is made of alone (with constants), or -1."""
        data, weight = self._origin
        return -1 if data[value] else weight[value]

    def _weight_operand(self, op: int) -> int:
        """The one operand of a product that is a weight against data, or -1."""
        operands = self.graph.operands[op][:2]
        weights = [k for k, v in enumerate(operands) if self._is_matrix(self.weight_of(v))]
        data, _ = self._origin
        if len(weights) != 1 or not data[operands[1 - weights[0]]]:
            return -1
        return weights[0]

    @cached_property
    def first_products(self) -> dict[int, int]:
        """For each weight the op of its first product with data, in program order."""
        found: dict[int, int] = {}
        for op, kind in enumerate(self.graph.kinds):
            if kind in PRODUCTS:
                k = self._weight_operand(op)
                if k >= 0:
                    found.setdefault(self.weight_of(self.graph.operands[op][k]), op)
        return found

    @cached_property
    def forward(self) -> list[bool]:
        """For each op, whether it belongs to the forward computation."""
        graph = self.graph
        needed = [False] * len(graph.shapes)
        for outcome in graph.outcomes:
            if outcome.alias is None and outcome.op not in self._paired_results:
                needed[outcome.value] = True
        forward = [False] * len(graph.kinds)
        first = set(self.first_products.values())
        changed = True
        while changed:  # as above
            changed = False
            for op in range(len(graph.kinds) - 1, -1, -1):
                targets = targets_of(graph, op)
                if forward[op] or not (op in first or any(needed[v] for v in targets)):
                    continue
                forward[op] = changed = True
                for operand in sources_of(graph, op):
                    needed[operand] = True
        return forward

    @cached_property
    def _paired_results(self) -> frozenset[int]:
        return frozenset(self.graph.outcomes[r].op for r in self.roles.pairs.values())

    # --- flow -------------------------------------------------------------------------------------

    def flow(self, argument: int, dim: int, size: int) -> Flow:
        """Where `dim` of the parameter gets to in the forward computation if `size` devices tile
        it."""
        return _Walk(self, argument).run(dim, size)

    def through_shapes(self, argument: int, dim: int) -> Iterator[tuple[int, int, int]]:
        """(op, operand, factor) of the ops that use the dimension of the weight itself, seen
        through ops on weights alone."""
        graph = self.graph
        frontier = [(graph.arguments[argument].value, dim)]
        seen = set(frontier)
        while frontier:
            value, d = frontier.pop()
            for op, k in graph.uses[value]:
                shape = graph.op_shapes[op]
                if k >= len(shape.inputs) or d >= len(shape.inputs[k]) or not shape.inputs[k][d]:
                    continue
                factor = shape.inputs[k][d][0]
                targets = targets_of(graph, op)
                if targets and self.weight_of(targets[0]) >= 0:
                    for place in places_of(graph, op, factor, d):
                        if place not in seen:
                            seen.add(place)
                            frontier.append(place)
                else:
                    yield op, k, factor

    def free_dims(self, argument: int) -> list[int]:
        """The dimensions of a weight that its first product neither contracts nor shares with the
        activation."""
        op = self.first_products.get(argument)
        if op is None:
            return []
        shape = self.graph.op_shapes[op]
        rank = len(self.graph.shapes[self.graph.arguments[argument].value])
        found: list[int] = []
        for dim in range(rank):
            for user, k, factor in self.through_shapes(argument, dim):
                shared = any(k2 != k for k2, _ in shape.where_in[factor]) if user == op else True
                if user == op and not shared and shape.where_out[factor]:
                    found.append(dim)
        return found


class _Walk:
    """One walk of a tiled dimension forward through the graph."""

    def __init__(self, structure: Structure, argument: int) -> None:
        self.structure = structure
        self.graph = structure.graph
        self.argument = argument
        self.places: dict[tuple[int, int], int] = {}
        self.rows: set[int] = set()
        self.absorbed: set[tuple[int, int]] = set()
        self.minor: list[tuple[int, int, int, int]] = []
        self.frontier: list[tuple[int, int, int]] = []

    def run(self, dim: int, size: int) -> Flow:
        value = self.graph.arguments[self.argument].value
        if self.graph.shapes[value][dim] % size:
            return self._flow(
                None, f"its size {self.graph.shapes[value][dim]} does not divide by {size}"
            )
        self._reach(value, dim, size)
        while self.frontier:
            value, dim, size = self.frontier.pop()
            for op, k in self.graph.uses[value]:
                if self.structure.forward[op] and self.graph.kinds[op] != RESULT:
                    why = self._use(op, k, dim, size)
                    if why:
                        return self._flow(op, why)
        for op, r, d, factor in self.minor:
            if not self._majors_reached(op, r, d, factor):
                return self._flow(op, "it is the minor part of a merged dimension")
        return self._flow(None, "")

    def _flow(self, op: int | None, why: str) -> Flow:
        return Flow(frozenset(self.rows), frozenset(self.absorbed), frozenset(self.places), op, why)

    def _reach(self, value: int, dim: int, size: int) -> None:
        if (value, dim) not in self.places:
            self.places[value, dim] = size
            self.frontier.append((value, dim, size))

    def _use(self, op: int, k: int, dim: int, size: int) -> str:
        """Follows one use; says why the dimension cannot be kept there, or nothing."""
        shape = self.graph.op_shapes[op]
        for factor in shape.inputs[k][dim]:
            whole = shape.factors[factor].size
            if whole == 1 or size == 1:
                continue
            if whole % size and size % whole:
                return f"its part of {whole} does not divide by {size}"
            why = self._factor(op, k, factor, dim, min(size, whole))
            if why:
                return why
            size //= min(size, whole)
        return "" if size == 1 else "the dimension is too small there"

    def _factor(self, op: int, k: int, factor: int, dim: int, size: int) -> str:
        shape = self.graph.op_shapes[op]
        kind = shape.factors[factor].kind
        if kind is Kind.REDUCTION:
            return self._absorb(op, k, factor)
        if kind is not Kind.PARALLEL or not shape.usable[factor]:
            return f"{self.graph.kinds[op]} needs the dimension whole"
        for r, d in shape.where_out[factor]:
            if shape.outputs[r][d][0] != factor:
                self.minor.append((op, r, d, factor))
        for value, d in places_of(self.graph, op, factor, dim):
            self._reach(value, d, size)
        return ""

    def _absorb(self, op: int, k: int, factor: int) -> str:
        """A contraction: with a weight a row product, with anything else the flow ends badly."""
        if self.graph.kinds[op] in PRODUCTS and k < 2:
            weight = self.structure.weight_of(self.graph.operands[op][1 - k])
            if weight >= 0:
                self.rows.add(weight)
                self.absorbed.add((op, factor))
                return ""
        return f"{self.graph.kinds[op]} sums it with no weight"

    def _majors_reached(self, op: int, r: int, d: int, factor: int) -> bool:
        """Whether all factors above this one in a merged dimension are tiled in full."""
        shape = self.graph.op_shapes[op]
        for major in shape.outputs[r][d]:
            if major == factor:
                return True
            size = shape.factors[major].size
            if size > 1 and not any(
                self.places.get((self.graph.operands[op][k], d2)) == size
                for k, d2 in shape.where_in[major]
            ):
                return False
        return True
