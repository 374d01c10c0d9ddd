"""Where is attention, and what are its queries, keys and values?"""

from __future__ import annotations

from dataclasses import dataclass

from .structure import PRODUCTS, Structure, places_of

EXPONENTIAL = "stablehlo.exponential"


@dataclass(frozen=True, slots=True)
class Attention:
    """The values that an attention multiplies (queries, keys, values) and what it makes of them."""

    queries: int
    keys: int
    values: int
    mixed: int


def attentions(structure: Structure) -> tuple[Attention, ...]:
    """The attentions of the forward computation, in program order.

    A product of two activations (scores), one dimension of which flows through a softmax into
    the contraction of a later product of two activations (mixing): that dimension is the keys'.
    """
    graph = structure.graph
    found: list[Attention] = []
    for op, kind in enumerate(graph.kinds):
        if kind not in PRODUCTS or not structure.forward[op] or not _of_activations(structure, op):
            continue
        (scores,) = graph.results[op]
        for dim in range(len(graph.shapes[scores])):
            mix, k = _mixed_along(structure, scores, dim)
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


def _of_activations(structure: Structure, op: int) -> bool:
    return all(structure.data[v] for v in structure.graph.operands[op][:2])


def _mixed_along(structure: Structure, value: int, dim: int) -> tuple[int, int]:
    """The product of activations that contracts what the dimension becomes, behind a softmax,
    and by which operand; -1, -1 if there is none."""
    graph = structure.graph
    frontier = [(value, dim, False)]
    seen = set(frontier)
    while frontier:
        current, d, soft = frontier.pop()
        for op, k in graph.uses[current]:
            shape = graph.op_shapes[op]
            if not structure.forward[op] or k >= len(shape.inputs) or not shape.inputs[k][d]:
                continue
            factor = shape.inputs[k][d][0]
            if graph.kinds[op] in PRODUCTS:
                if soft and _of_activations(structure, op) and not shape.where_out[factor]:
                    return op, k
                continue
            soft_now = soft or graph.kinds[op] == EXPONENTIAL
            for next_value, next_dim in places_of(graph, op, factor, d):
                place = (next_value, next_dim, soft_now)
                if place not in seen:
                    seen.add(place)
                    frontier.append(place)
    return -1, -1
