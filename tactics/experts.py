"""Which weights are experts of a mixture, and where does data get to them and leave them?"""

from __future__ import annotations

from .structure import PRODUCTS, Structure, places_of


def experts(structure: Structure) -> tuple[tuple[int, int], ...]:
    """(argument, dimension) of the weights that have a matrix for each expert: a dimension that
    the first product shares with the activation, as batched products do."""
    found: dict[tuple[int, int], None] = {}
    for argument, op in structure.first_products.items():
        shape = structure.graph.op_shapes[op]
        rank = len(structure.graph.shapes[structure.graph.arguments[argument].value])
        for dim in range(rank) if structure.forward[op] else ():
            for user, k, factor in structure.through_shapes(argument, dim):
                shared = any(k2 != k for k2, _ in shape.where_in[factor])
                if user == op and shared and shape.where_out[factor]:
                    found[argument, dim] = None
    return tuple(found)


def expert_borders(structure: Structure) -> tuple[int, ...]:
    """The values, forward and backward, by which data gets to the experts (dispatch) and leaves
    them (combine).

    Inside, every product keeps the experts apart: their dimension is a batch dimension of it.
    """
    graph = structure.graph
    inside = _inside_experts(structure)
    border: dict[int, None] = {}
    for value, dim in inside:
        for op, k in graph.uses[value]:
            if graph.kinds[op] not in PRODUCTS:
                continue
            other, d = _partner(structure, op, k, dim)
            if other < 0:
                border[value] = None
            elif (other, d) not in inside and structure.weight_of(other) < 0:
                border[other] = None
    return tuple(border)


def _partner(structure: Structure, op: int, k: int, dim: int) -> tuple[int, int]:
    """The other operand of a product and its dimension batched with `dim`, or -1, -1."""
    shape = structure.graph.op_shapes[op]
    for factor in shape.inputs[k][dim]:
        for k2, d2 in shape.where_in[factor]:
            if k2 != k and shape.where_out[factor]:
                return structure.graph.operands[op][k2], d2
    return -1, -1


def _inside_experts(structure: Structure) -> dict[tuple[int, int], None]:
    """(value, dimension) of all that the experts' weights reach along their own dimension."""
    graph = structure.graph
    found = {(graph.arguments[a].value, dim): None for a, dim in experts(structure)}
    frontier = list(found)
    while frontier:
        value, dim = frontier.pop()
        for op, k in graph.uses[value]:
            shape = graph.op_shapes[op]
            if k >= len(shape.inputs) or len(shape.inputs[k][dim]) != 1:
                continue
            if graph.kinds[op] in PRODUCTS and _partner(structure, op, k, dim)[0] < 0:
                continue
            for place in places_of(graph, op, shape.inputs[k][dim][0], dim):
                if place not in found:
                    found[place] = None
                    frontier.append(place)
    return found
