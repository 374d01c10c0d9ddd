"""In which order the axes of one dimension lie, major to minor.

The order is nest order, but the axes that a parameter will be gathered along go minor, so that
gathers and reduce-scatters act on the minor axis and need no permute (DESIGN, section 5). The order
has to be the same wherever the same axes meet on connected dimensions: connected (slot, factor)
nodes with two axes or more form a component, and each component gets one ranking.
"""

from __future__ import annotations

from math import prod

from .graph import ARGUMENT
from .state import State

Node = tuple[int, int]


def dimension_ranks(state: State) -> dict[tuple[int, int, int], int]:
    """(slot, factor, axis) -> rank for every factor that two axes or more tile."""
    nodes = _nodes(state)
    if not nodes:
        return {}
    parent = {node: node for node in nodes}

    def find(node: Node) -> Node:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for a, b in _links(state, nodes):
        parent[find(b)] = find(a)
    members: dict[Node, list[Node]] = {}
    for node in nodes:
        members.setdefault(find(node), []).append(node)
    ranks: dict[tuple[int, int, int], int] = {}
    for component in members.values():
        ranking = _ranking(state, component)
        for slot, factor in component:
            on = state.axes_on(slot, factor)
            given = slot in state.graph.given
            for position, axis in enumerate(on):
                ranks[slot, factor, axis] = position if given else ranking[axis]
    return ranks


def _nodes(state: State) -> dict[Node, None]:
    """The (slot, factor) pairs that two axes or more tile."""
    found: dict[Node, None] = {}
    for slot, nest in enumerate(state.nests):
        if len(nest) > 1:
            seen: set[int] = set()
            for _, factor in nest:
                if factor >= 0 and factor in seen:
                    found[slot, factor] = None
                seen.add(factor)
    return found


def _links(state: State, nodes: dict[Node, None]) -> list[tuple[Node, Node]]:
    """Nodes that tile the same dimension of the same value, at its producer and at a use."""
    graph = state.graph
    links: list[tuple[Node, Node]] = []
    for slot, factor in nodes:
        for op in graph.slot_ops[slot]:
            for k, d in graph.op_shapes[op].where_in[factor]:
                producer, r = graph.producer[graph.operands[op][k]]
                for f in graph.op_shapes[producer].outputs[r][d]:
                    other = (graph.slots[producer], f)
                    if other in nodes:
                        links.append(((slot, factor), other))
    return links


def _ranking(state: State, component: list[Node]) -> dict[int, int]:
    """Rank of each axis: those that an argument is gathered along last, else nest order. Padding is
    only ever at the tail of the whole dimension, so an uneven one keeps its nest order."""
    axes: dict[int, None] = {}
    uneven = False
    gathered: set[int] = set()
    given = state.graph.given
    for slot, factor in sorted(component, key=lambda node: (node[0] not in given, node)):
        on = state.axes_on(slot, factor)
        axes.update(dict.fromkeys(on))
        tiles = prod(state.sizes[axis] for axis in on)
        uneven |= state.graph.op_shapes[slot].factors[factor].size % tiles != 0
        if state.graph.kinds[slot] == ARGUMENT and slot not in given:
            gathered.update(_gathered(state, slot, factor, on))
    if uneven:
        gathered.clear()
    ordered = [a for a in axes if a not in gathered] + [a for a in axes if a in gathered]
    return {axis: rank for rank, axis in enumerate(ordered)}


def _gathered(state: State, slot: int, factor: int, axes: tuple[int, ...]) -> set[int]:
    """The axes that some use of the argument wants whole."""
    graph = state.graph
    (value,) = graph.results[slot]
    found: set[int] = set()
    for op, k in graph.uses[value]:
        for axis in axes:
            entry = state.entry[axis][graph.slots[op]]
            where = graph.op_shapes[op].where_in[entry] if entry >= 0 else ()
            if (k, factor) not in where:
                found.add(axis)
    return found
