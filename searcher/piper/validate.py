"""Is a layer graph one that can be planned? Finds every fault, each with its path in the JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from .model import Edge, Fault, JsonPath, LayerGraph, LayerGraphError, LayerNode, LayerOption

_COSTS = (
    ("time", "timePerSample"),
    ("parameters", "parameterSize"),
    ("memory_a", "memoryUsageA"),
    ("memory_b", "memoryUsageB"),
)


def check_graph(graph: LayerGraph) -> None:
    """Raise LayerGraphError with every fault of `graph`, if it has any."""
    faults = list(
        graph_faults(graph.nodes, graph.edges, range(len(graph.nodes)), range(len(graph.edges)))
    )
    if faults:
        raise LayerGraphError(faults)


def graph_faults(
    nodes: Sequence[LayerNode],
    edges: Sequence[Edge],
    node_places: Sequence[int],
    edge_places: Sequence[int],
    unreadable: frozenset[int] = frozenset(),
) -> Iterator[Fault]:
    """Every fault of a graph; the places are the elements' indices in the JSON arrays.

    `unreadable` are ids of nodes that exist but have faults of their own: edges to them are fine.
    """
    known = {node.id for node in nodes} | unreadable
    if not known:
        yield Fault("a layer graph needs at least one node, got: 0", ("nodes",))
    yield from _repeated_ids(nodes, node_places)
    yield from _edge_faults(edges, edge_places, known)
    before: dict[int, set[int]] = {node: set() for node in known}
    after: dict[int, set[int]] = {node: set() for node in known}
    for edge in edges:
        if edge.source in known and edge.target in known:
            before[edge.target].add(edge.source)
            after[edge.source].add(edge.target)
    for node, place in zip(nodes, node_places, strict=True):
        yield from _node_faults(node, ("nodes", place, "TMPCs"), known, before, after)
    yield from _cycles(edges, edge_places, before)


def _repeated_ids(nodes: Sequence[LayerNode], places: Sequence[int]) -> Iterator[Fault]:
    first: dict[int, int] = {}
    for node, place in zip(nodes, places, strict=True):
        if node.id in first:
            message = f"node id is already that of nodes[{first[node.id]}], got: {node.id}"
            yield Fault(message, ("nodes", place, "id"))
        first.setdefault(node.id, place)


def _edge_faults(edges: Sequence[Edge], places: Sequence[int], known: set[int]) -> Iterator[Fault]:
    first: dict[tuple[int, int], int] = {}
    for edge, place in zip(edges, places, strict=True):
        path: JsonPath = ("edges", place)
        for key, node in (("sourceId", edge.source), ("destId", edge.target)):
            if node not in known:
                yield Fault(f"no node has this id, got: {node}", (*path, key))
        if problem := _cost_problem(edge.bytes):
            yield Fault(problem, (*path, "communicationCost"))
        ends = (edge.source, edge.target)
        if ends in first:
            message = f"duplicate of edges[{first[ends]}], got: {edge.source} -> {edge.target}"
            yield Fault(message, path)
        first.setdefault(ends, place)


def _node_faults(
    node: LayerNode,
    path: JsonPath,
    known: set[int],
    before: dict[int, set[int]],
    after: dict[int, set[int]],
) -> Iterator[Fault]:
    if not node.options:
        yield Fault(f"node {node.id} has no options", path)
    for t, options in node.options.items():
        here: JsonPath = (*path, str(t))
        if t < 1:
            yield Fault(f"a tensor-parallel degree is at least 1, got: {t}", here)
        if not options:
            yield Fault(f"node {node.id} has no options for degree {t}", here)
        for name, count in Counter(option.id for option in options).items():
            if count > 1:
                yield Fault(f"{count} options share an id, got: {name}", here)
        for i, option in enumerate(options):
            for attribute, key in _COSTS:
                if problem := _cost_problem(getattr(option, attribute)):
                    yield Fault(problem, (*here, i, key))
            yield from _sync_faults(node, option, (*here, i), known, before, after)


def _sync_faults(
    node: LayerNode,
    option: LayerOption,
    path: JsonPath,
    known: set[int],
    before: dict[int, set[int]],
    after: dict[int, set[int]],
) -> Iterator[Fault]:
    sides = (
        ("syncTimeFw", option.sync_forward, before, "predecessor"),
        ("syncTimeBw", option.sync_backward, after, "successor"),
    )
    for key, sync, neighbours, side in sides:
        for other, size in sync.items():
            here: JsonPath = (*path, key, str(other))
            if other not in known:
                yield Fault(f"no node has this id, got: {other}", here)
            elif other not in neighbours[node.id]:
                yield Fault(f"not a {side} of node {node.id}, got: {other}", here)
            if problem := _cost_problem(size):
                yield Fault(problem, here)


def _cost_problem(value: float) -> str | None:
    if math.isfinite(value) and value >= 0:
        return None
    return f"a cost is a finite number of at least 0, got: {value}"


def _cycles(
    edges: Sequence[Edge], places: Sequence[int], before: dict[int, set[int]]
) -> Iterator[Fault]:
    """A fault for each of a set of cycles that share no node."""
    place_of = {(e.source, e.target): place for e, place in zip(edges, places, strict=True)}
    left = {node: set(sources) for node, sources in before.items()}
    while True:
        _drop_sources(left)
        if not left:
            return
        cycle = _walk_back(left)
        text = " -> ".join(str(node) for node in [*cycle, cycle[0]])
        yield Fault(f"the graph has a cycle: {text}", ("edges", place_of[cycle[-1], cycle[0]]))
        for node in cycle:
            del left[node]
        for sources in left.values():
            sources.difference_update(cycle)


def _drop_sources(left: dict[int, set[int]]) -> None:
    """Remove nodes that have no predecessor until every node has one."""
    after: dict[int, list[int]] = {node: [] for node in left}
    for node, sources in left.items():
        for source in sources:
            after[source].append(node)
    ready = [node for node, sources in left.items() if not sources]
    for node in ready:
        del left[node]
        for target in after[node]:
            left[target].discard(node)
            if not left[target]:
                ready.append(target)


def _walk_back(left: dict[int, set[int]]) -> list[int]:
    """A cycle of a graph in which every node has a predecessor, in edge order."""
    node = next(iter(left))
    position: dict[int, int] = {}
    walk: list[int] = []
    while node not in position:
        position[node] = len(walk)
        walk.append(node)
        node = min(left[node])
    return walk[position[node] :][::-1]
