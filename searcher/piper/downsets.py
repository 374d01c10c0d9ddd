"""Which node sets can be "everything up to a stage border"? The downsets of a layer graph.

A downset holds every predecessor of its nodes. A stage is the difference of two nested downsets,
so the planner works on pairs (D, D') with D inside D'.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .model import Fault, LayerGraph, LayerGraphError

_DOWNSET_OVERHEAD = 200  # bytes of Python objects a downset while they are listed


@dataclass(frozen=True)
class Lattice:
    """Downsets sorted by size, from empty to full, and for each those that contain it.

    `member[i, v]` is whether downset i holds the v-th node of `ids` (positions in the graph's
    node list). The proper supersets of downset i are `above[start[i] : start[i + 1]]`, ascending.
    """

    ids: tuple[int, ...]
    member: NDArray[np.bool_]
    start: NDArray[np.int64]
    above: NDArray[np.int32]

    @property
    def size(self) -> int:
        """The number of downsets."""
        return len(self.member)

    @property
    def pairs(self) -> int:
        """The number of nested pairs, which is that of possible stages."""
        return len(self.above)


def all_downsets(graph: LayerGraph, memory_limit: float) -> list[int]:
    """Every downset as a bit mask over node positions, sorted by size.

    Raises LayerGraphError when listing them would take more than `memory_limit` bytes.
    """
    needs, after = _neighbours(graph)
    most = int(memory_limit / (_DOWNSET_OVERHEAD + 2 * len(needs)))
    level = {0: sum(1 << node for node, need in enumerate(needs) if not need)}
    found = [0]
    while any(level.values()):
        level = _next_level(level, needs, after)
        found.extend(level)
        if len(found) > most:
            message = (
                f"the graph has more than {most} downsets, too many for {memory_limit:.0f} bytes;"
                f" merge nodes or raise the memory limit, got: {len(needs)} nodes"
            )
            raise LayerGraphError([Fault(message, ("nodes",))])
    return found


def _next_level(level: dict[int, int], needs: list[int], after: list[list[int]]) -> dict[int, int]:
    """The downsets with one node more; the values are masks of the nodes that can be added."""
    bigger: dict[int, int] = {}
    for downset, addable in level.items():
        left = addable
        while left:
            bit = left & -left
            left ^= bit
            grown = downset | bit
            if grown not in bigger:
                fresh = addable ^ bit
                for node in after[bit.bit_length() - 1]:
                    if not needs[node] & ~grown:
                        fresh |= 1 << node
                bigger[grown] = fresh
    return bigger


def prefixes(graph: LayerGraph) -> list[int]:
    """The chain of downsets that one topological order gives."""
    position = {node.id: i for i, node in enumerate(graph.nodes)}
    masks = [0]
    for node in graph.order():
        masks.append(masks[-1] | 1 << position[node])
    return masks


def near(
    graph: LayerGraph, masks: list[int], stages: Sequence[Collection[int]], count: int
) -> list[int]:
    """The `count` downsets nearest to those that the stages of a plan pass through.

    Distance is the number of nodes that differ from the downset of the same size on a topological
    order that runs through the plan's stages one after the other.
    """
    position = {node.id: i for i, node in enumerate(graph.nodes)}
    stage_of = {node: n for n, stage in enumerate(stages) for node in stage}
    order = sorted(graph.order(), key=lambda node: stage_of[node])
    path = [0]
    for node in order:
        path.append(path[-1] | 1 << position[node])
    distance = [(mask ^ path[mask.bit_count()]).bit_count() for mask in masks]
    nearest = sorted(range(len(masks)), key=lambda i: distance[i])[: max(count, len(path))]
    return [masks[i] for i in sorted(nearest)]


def _neighbours(graph: LayerGraph) -> tuple[list[int], list[list[int]]]:
    """For each node position a mask of its predecessors and the list of its successors."""
    position = {node.id: i for i, node in enumerate(graph.nodes)}
    needs = [0] * len(position)
    after: list[list[int]] = [[] for _ in position]
    for edge in graph.edges:
        needs[position[edge.target]] |= 1 << position[edge.source]
        after[position[edge.source]].append(position[edge.target])
    return needs, after


def make_lattice(graph: LayerGraph, masks: list[int], memory_limit: float) -> Lattice:
    """The lattice of the given downsets (sorted by size).

    Raises LayerGraphError as soon as the nested pairs need more than `memory_limit` bytes.
    """
    count = len(graph.nodes)
    words = max(1, (count + 63) // 64)
    raw = b"".join(mask.to_bytes(8 * words, "little") for mask in masks)
    packed = np.frombuffer(raw, dtype=np.uint64).reshape(len(masks), words).T.copy()
    octets = np.frombuffer(raw, dtype=np.uint8).reshape(len(masks), 8 * words)
    member = np.unpackbits(octets, axis=1, bitorder="little")[:, :count].astype(np.bool_)
    rows: list[NDArray[np.int32]] = []
    start = np.zeros(len(masks) + 1, np.int64)
    for i in range(len(masks)):
        missing = packed[0, i] & ~packed[0, i + 1 :]
        for word in range(1, words):
            missing |= packed[word, i] & ~packed[word, i + 1 :]
        row = np.flatnonzero(missing == 0).astype(np.int32)
        row += np.int32(i + 1)
        rows.append(row)
        start[i + 1] = start[i] + len(row)
        if 8 * start[i + 1] > memory_limit:
            message = (
                f"the graph's {len(masks)} downsets have more than {start[i + 1]} nested pairs,"
                f" too many for {memory_limit:.0f} bytes, got: {count} nodes"
            )
            raise LayerGraphError([Fault(message, ("nodes",))])
    above = np.concatenate(rows) if rows else np.zeros(0, np.int32)
    return Lattice(tuple(node.id for node in graph.nodes), member, start, above)
