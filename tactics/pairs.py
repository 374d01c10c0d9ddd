"""Which weights make Megatron's pairs, which are vocabularies? Found on the graph, not by name.

A *column* weight is a parameter used in a matrix product with an activation, one of whose free
dimensions flows on through ops that keep it (elementwise ops, reshapes, transposes, batched
products, reductions of other dimensions) into contractions with other parameters, the *row*
weights, and nowhere else. Tiling that dimension needs one sum after each row product and nothing
between (Megatron-LM, arXiv 1909.08053, section 3). In attention the heads are such a dimension:
they survive q·k and the mixing as a batch dimension; the size of a head does not, q·k contracts it
with no parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..engine.roles import PARAM, targets_of
from .structure import Flow, Structure


@dataclass(frozen=True, slots=True)
class Column:
    """A column weight (argument index), its dimension, its first product (op), its row weights, and
    the row products."""

    argument: int
    dim: int
    product: int
    rows: tuple[int, ...]
    row_products: tuple[int, ...]


def columns(structure: Structure, size: int) -> tuple[Column, ...]:
    """The column weights for an axis of that size, in the order of their first products.

    Weights that meet in one row product must agree on the dimension that it contracts (values
    could also be tiled inside a head, queries cannot): the one that most elements can take.
    """
    candidates = _candidates(structure, size)
    agreed = _agreed(structure, candidates)
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
                    structure.first_products[argument],
                    tuple(sorted(flow.rows)),
                    tuple(products),
                )
                rows |= flow.rows
                break
    return tuple(chosen.values())


def obstacles(structure: Structure, size: int) -> tuple[tuple[int, int, Flow], ...]:
    """For each weight with a product that is no column: (argument, dimension, flow) of the free
    dimension that gets furthest, with what stops it; the nearest to a column first."""
    taken = {column.argument for column in columns(structure, size)}
    taken |= {row for column in columns(structure, size) for row in column.rows}
    found: list[tuple[int, int, Flow]] = []
    for argument in structure.first_products:
        if argument in taken:
            continue
        flows = [
            (argument, d, structure.flow(argument, d, size)) for d in structure.free_dims(argument)
        ]
        if flows:
            found.append(max(flows, key=lambda item: _progress(structure, item)))
    return tuple(sorted(found, key=lambda item: _progress(structure, item), reverse=True))


def _progress(structure: Structure, item: tuple[int, int, Flow]) -> tuple[bool, int]:
    """How near a dimension is to a column's: only its size is wrong, or how far it flows."""
    argument, dim, flow = item
    extent = structure.graph.shapes[structure.graph.arguments[argument].value][dim]
    part = next((n for n in range(2, extent + 1) if extent % n == 0), 1)
    only_size = not flow.places and structure.flow(argument, dim, part).clean
    return only_size, len(flow.places)


def rows(structure: Structure, size: int) -> tuple[tuple[int, int], ...]:
    """(argument, dimension) of the row weights of the columns, for an axis of that size."""
    found: dict[tuple[int, int], None] = {}
    for column in columns(structure, size):
        flow = structure.flow(column.argument, column.dim, size)
        for row in column.rows:
            rank = len(structure.graph.shapes[structure.graph.arguments[row].value])
            for dim in range(rank):
                if any((op, f) in flow.absorbed for op, _, f in structure.through_shapes(row, dim)):
                    found[row, dim] = None
    return tuple(found)


def _candidates(structure: Structure, size: int) -> dict[int, list[tuple[int, Flow]]]:
    """Of each weight the dimensions that flow cleanly, in the order of the first products."""
    found: dict[int, list[tuple[int, Flow]]] = {}
    for argument, _ in sorted(structure.first_products.items(), key=lambda item: item[1]):
        flows = [
            (dim, structure.flow(argument, dim, size)) for dim in structure.free_dims(argument)
        ]
        clean = [(d, flow) for d, flow in flows if flow.clean and argument not in flow.rows]
        if clean:
            found[argument] = clean
    return found


def _agreed(
    structure: Structure, candidates: Mapping[int, list[tuple[int, Flow]]]
) -> dict[int, int]:
    """For each row product the contracted factor that most elements of columns can take."""
    score: dict[int, dict[int, int]] = {}
    for argument, flows in candidates.items():
        for place in {place for _, flow in flows for place in flow.absorbed}:
            op, factor = place
            by_factor = score.setdefault(op, {})
            by_factor[factor] = by_factor.get(factor, 0) + structure.elements(argument)
    return {
        op: max(by_factor, key=lambda factor: (by_factor[factor], -factor))
        for op, by_factor in score.items()
    }


def vocabulary(structure: Structure) -> tuple[tuple[int, int], ...]:
    """(argument, dimension) of tables that are looked up and of the last product's weight."""
    found: dict[tuple[int, int], None] = {}
    for argument in structure.roles.of(PARAM):
        rank = len(structure.graph.shapes[structure.graph.arguments[argument].value])
        if rank < 2:
            continue
        for dim in range(rank):
            for op, k, factor in structure.through_shapes(argument, dim):
                if _is_lookup(structure, op, k, factor):
                    found[argument, dim] = None
    for argument, op in structure.first_products.items():
        if structure.forward[op] and not _reaches_product(structure, op):
            for dim in structure.free_dims(argument):
                found[argument, dim] = None
    return tuple(found)


def _is_lookup(structure: Structure, op: int, k: int, factor: int) -> bool:
    graph = structure.graph
    return (
        graph.kinds[op] == "stablehlo.gather"
        and k == 0
        and structure.forward[op]
        and not graph.op_shapes[op].where_out[factor]
    )


def _reaches_product(structure: Structure, op: int) -> bool:
    """Whether what the op makes gets to the first product of another weight."""
    graph = structure.graph
    targets = set(structure.first_products.values()) - {op}
    frontier = list(graph.results[op])
    seen = set(frontier)
    while frontier:
        for user, _ in graph.uses[frontier.pop()]:
            if user in targets:
                return True
            if structure.forward[user]:
                fresh = [v for v in targets_of(graph, user) if v not in seen]
                seen.update(fresh)
                frontier.extend(fresh)
    return False
