"""Which weights make Megatron's pairs, which are vocabularies? Found on the graph, not by name.

A *column* weight is a parameter used in a matrix product with an activation, one of whose free
dimensions flows on through ops that keep it (elementwise ops, reshapes, transposes, batched
products, reductions of other dimensions) into contractions with other parameters, the *row*
weights, and nowhere else. Tiling that dimension needs one sum after each row product and nothing
between (Megatron-LM, arXiv 1909.08053, section 3). In attention the heads are such a dimension:
they survive q·k and the mixing as a batch dimension; the size of a head does not, q·k contracts it
with no parameter.

Only the forward computation counts: what a loss, or the first product of some parameter, depends
on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ..engine.graph import ARGUMENT, CARRY_KINDS, RESULT, Graph
from ..engine.roles import PARAM, Roles, sources_of, targets_of
from ..partir_dialect.rules.base import Kind

EXPONENTIAL = "stablehlo.exponential"
PRODUCTS = frozenset({"stablehlo.dot_general"})


@dataclass(frozen=True, slots=True)
class Column:
    """A column weight (argument index), its dimension, its first product (op), its row weights, and
    the row products."""

    argument: int
    dim: int
    product: int
    rows: tuple[int, ...]
    row_products: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Attention:
    """The values that an attention multiplies (queries, keys, values) and what it makes of them."""

    queries: int
    keys: int
    values: int
    mixed: int


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
                largest = max((weight[v] for v in operands), key=self._size, default=-1)
                for result in graph.results[op]:
                    if (data[result], weight[result]) != (any_data, largest):
                        data[result], weight[result] = any_data, largest
                        changed = True
        return data, weight

    def _size(self, argument: int) -> int:
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

    def _through_shapes(self, argument: int, dim: int) -> Iterator[tuple[int, int, int]]:
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
            for user, k, factor in self._through_shapes(argument, dim):
                shared = any(k2 != k for k2, _ in shape.where_in[factor]) if user == op else True
                if user == op and not shared and shape.where_out[factor]:
                    found.append(dim)
        return found

    # --- answers ----------------------------------------------------------------------------------

    def columns(self, size: int) -> tuple[Column, ...]:
        """The column weights for an axis of that size, in the order of their first products.

        Weights that meet in one row product must agree on the dimension that it contracts (values
        could also be tiled inside a head, queries cannot): the one that most elements can take.
        """
        candidates = self._candidates(size)
        agreed = self._agreed(candidates)
        rows: set[int] = set()
        chosen: dict[int, Column] = {}
        for argument, flows in candidates.items():
            if argument in rows:
                continue
            for dim, flow in flows:
                agrees = all(agreed[op] == factor for op, factor in flow.absorbed)
                if agrees and not flow.rows & chosen.keys():
                    products = sorted({op for op, _ in flow.absorbed})
                    chosen[argument] = Column(
                        argument,
                        dim,
                        self.first_products[argument],
                        tuple(sorted(flow.rows)),
                        tuple(products),
                    )
                    rows |= flow.rows
                    break
        return tuple(chosen.values())

    def obstacles(self, size: int) -> tuple[tuple[int, int, Flow], ...]:
        """For each weight with a product that is no column: (argument, dimension, flow) of the free
        dimension that gets furthest, with what stops it; the nearest to a column first."""
        taken = {column.argument for column in self.columns(size)}
        taken |= {row for column in self.columns(size) for row in column.rows}
        found: list[tuple[int, int, Flow]] = []
        for argument in self.first_products:
            if argument in taken:
                continue
            flows = [(argument, d, self.flow(argument, d, size)) for d in self.free_dims(argument)]
            if flows:
                found.append(max(flows, key=self._progress))
        return tuple(sorted(found, key=self._progress, reverse=True))

    def _progress(self, item: tuple[int, int, Flow]) -> tuple[bool, int]:
        """How near a dimension is to a column's: only its size is wrong, or how far it flows."""
        argument, dim, flow = item
        extent = self.graph.shapes[self.graph.arguments[argument].value][dim]
        part = next((n for n in range(2, extent + 1) if extent % n == 0), 1)
        only_size = not flow.places and self.flow(argument, dim, part).clean
        return only_size, len(flow.places)

    def rows(self, size: int) -> tuple[tuple[int, int], ...]:
        """(argument, dimension) of the row weights of the columns, for an axis of that size."""
        found: dict[tuple[int, int], None] = {}
        for column in self.columns(size):
            flow = self.flow(column.argument, column.dim, size)
            for row in column.rows:
                rank = len(self.graph.shapes[self.graph.arguments[row].value])
                for dim in range(rank):
                    if any((op, f) in flow.absorbed for op, _, f in self._through_shapes(row, dim)):
                        found[row, dim] = None
        return tuple(found)

    def _candidates(self, size: int) -> dict[int, list[tuple[int, Flow]]]:
        """Of each weight the dimensions that flow cleanly, in the order of the first products."""
        found: dict[int, list[tuple[int, Flow]]] = {}
        for argument, _ in sorted(self.first_products.items(), key=lambda item: item[1]):
            flows = [(dim, self.flow(argument, dim, size)) for dim in self.free_dims(argument)]
            clean = [(d, flow) for d, flow in flows if flow.clean and argument not in flow.rows]
            if clean:
                found[argument] = clean
        return found

    def _agreed(self, candidates: Mapping[int, list[tuple[int, Flow]]]) -> dict[int, int]:
        """For each row product the contracted factor that most elements of columns can take."""
        score: dict[int, dict[int, int]] = {}
        for argument, flows in candidates.items():
            for place in {place for _, flow in flows for place in flow.absorbed}:
                op, factor = place
                by_factor = score.setdefault(op, {})
                by_factor[factor] = by_factor.get(factor, 0) + self._size(argument)
        return {
            op: max(by_factor, key=lambda factor: (by_factor[factor], -factor))
            for op, by_factor in score.items()
        }

    def vocabulary(self) -> tuple[tuple[int, int], ...]:
        """(argument, dimension) of tables that are looked up and of the last product's weight."""
        found: dict[tuple[int, int], None] = {}
        for argument in self.roles.of(PARAM):
            rank = len(self.graph.shapes[self.graph.arguments[argument].value])
            if rank < 2:
                continue
            for dim in range(rank):
                for op, k, factor in self._through_shapes(argument, dim):
                    if self._is_lookup(op, k, factor):
                        found[argument, dim] = None
        for argument, op in self.first_products.items():
            if self.forward[op] and not self._reaches_product(op):
                for dim in self.free_dims(argument):
                    found[argument, dim] = None
        return tuple(found)

    def experts(self) -> tuple[tuple[int, int], ...]:
        """(argument, dimension) of the weights that have a matrix for each expert: a dimension that
        the first product shares with the activation, as batched products do."""
        found: dict[tuple[int, int], None] = {}
        for argument, op in self.first_products.items():
            shape = self.graph.op_shapes[op]
            rank = len(self.graph.shapes[self.graph.arguments[argument].value])
            for dim in range(rank) if self.forward[op] else ():
                for user, k, factor in self._through_shapes(argument, dim):
                    shared = any(k2 != k for k2, _ in shape.where_in[factor])
                    if user == op and shared and shape.where_out[factor]:
                        found[argument, dim] = None
        return tuple(found)

    def expert_borders(self) -> tuple[int, ...]:
        """The values, forward and backward, by which data gets to the experts (dispatch) and leaves
        them (combine).

        Inside, every product keeps the experts apart: their dimension is a batch dimension of it.
        """
        graph = self.graph
        inside = self._inside_experts()
        border: dict[int, None] = {}
        for value, dim in inside:
            for op, k in graph.uses[value]:
                if graph.kinds[op] not in PRODUCTS:
                    continue
                other, d = self._partner(op, k, dim)
                if other < 0:
                    border[value] = None
                elif (other, d) not in inside and self.weight_of(other) < 0:
                    border[other] = None
        return tuple(border)

    def _partner(self, op: int, k: int, dim: int) -> tuple[int, int]:
        """The other operand of a product and its dimension batched with `dim`, or -1, -1."""
        shape = self.graph.op_shapes[op]
        for factor in shape.inputs[k][dim]:
            for k2, d2 in shape.where_in[factor]:
                if k2 != k and shape.where_out[factor]:
                    return self.graph.operands[op][k2], d2
        return -1, -1

    def _inside_experts(self) -> dict[tuple[int, int], None]:
        """(value, dimension) of all that the experts' weights reach along their own dimension."""
        graph = self.graph
        found = {(graph.arguments[a].value, dim): None for a, dim in self.experts()}
        frontier = list(found)
        while frontier:
            value, dim = frontier.pop()
            for op, k in graph.uses[value]:
                shape = graph.op_shapes[op]
                if k >= len(shape.inputs) or len(shape.inputs[k][dim]) != 1:
                    continue
                if graph.kinds[op] in PRODUCTS and self._partner(op, k, dim)[0] < 0:
                    continue
                for place in places_of(graph, op, shape.inputs[k][dim][0], dim):
                    if place not in found:
                        found[place] = None
                        frontier.append(place)
        return found

    def attentions(self) -> tuple[Attention, ...]:
        """The attentions of the forward computation, in program order.

        A product of two activations (scores), one dimension of which flows through a softmax into
        the contraction of a later product of two activations (mixing): that dimension is the keys'.
        """
        graph = self.graph
        found: list[Attention] = []
        for op, kind in enumerate(graph.kinds):
            if kind not in PRODUCTS or not self.forward[op] or not self._of_activations(op):
                continue
            (scores,) = graph.results[op]
            for dim in range(len(graph.shapes[scores])):
                mix, k = self._mixed_along(scores, dim)
                if mix < 0:
                    continue
                (factor,) = graph.op_shapes[op].outputs[0][dim]
                key = graph.op_shapes[op].where_in[factor][0][0]
                found.append(
                    Attention(
                        graph.operands[op][1 - key],
                        graph.operands[op][key],
                        graph.operands[mix][1 - k],
                        graph.results[mix][0],
                    )
                )
                break
        return tuple(found)

    def _of_activations(self, op: int) -> bool:
        data, _ = self._origin
        return all(data[v] for v in self.graph.operands[op][:2])

    def _mixed_along(self, value: int, dim: int) -> tuple[int, int]:
        """The product of activations that contracts what the dimension becomes, behind a softmax,
        and by which operand; -1, -1 if there is none."""
        graph = self.graph
        frontier = [(value, dim, False)]
        seen = set(frontier)
        while frontier:
            current, d, soft = frontier.pop()
            for op, k in graph.uses[current]:
                shape = graph.op_shapes[op]
                if not self.forward[op] or k >= len(shape.inputs) or not shape.inputs[k][d]:
                    continue
                factor = shape.inputs[k][d][0]
                if graph.kinds[op] in PRODUCTS:
                    if soft and self._of_activations(op) and not shape.where_out[factor]:
                        return op, k
                    continue
                soft_now = soft or graph.kinds[op] == EXPONENTIAL
                for next_value, next_dim in places_of(graph, op, factor, d):
                    place = (next_value, next_dim, soft_now)
                    if place not in seen:
                        seen.add(place)
                        frontier.append(place)
        return -1, -1

    def _is_lookup(self, op: int, k: int, factor: int) -> bool:
        graph = self.graph
        return (
            graph.kinds[op] == "stablehlo.gather"
            and k == 0
            and self.forward[op]
            and not graph.op_shapes[op].where_out[factor]
        )

    def _reaches_product(self, op: int) -> bool:
        """Whether what the op makes gets to the first product of another weight."""
        graph = self.graph
        targets = set(self.first_products.values()) - {op}
        frontier = list(graph.results[op])
        seen = set(frontier)
        while frontier:
            for user, _ in graph.uses[frontier.pop()]:
                if user in targets:
                    return True
                if self.forward[user]:
                    fresh = [v for v in targets_of(graph, user) if v not in seen]
                    seen.update(fresh)
                    frontier.extend(fresh)
        return False


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
