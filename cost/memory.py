"""How much memory does a device need at the worst moment, and for which values?

Liveness over the plan in its schedule: a value lives from the step that makes it to the last that
reads it, arguments from the beginning, results to the end, arguments that are not donated always.
Constants, iotas and broadcasts are made where they are used and take no memory; an elementwise op
writes into an operand that dies there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..engine.graph import Graph
from ..engine.plan import Compute, Plan, Reshard

_MADE_AT_USE = frozenset({"stablehlo.constant", "stablehlo.iota", "stablehlo.broadcast_in_dim"})


@dataclass(frozen=True)
class Peak:
    """The most bytes that are live at once on one device, and the local values that are."""

    bytes: int
    live: tuple[int, ...]


def peak_memory(plan: Plan, donated: Collection[int] = ()) -> Peak:
    """The peak of a plan. `donated` are the indices of arguments whose memory results take over."""
    last = _last_reads(plan, donated)
    size = [0 if _is_free(plan, v) else value.bytes for v, value in enumerate(plan.values)]
    live: dict[int, int] = {v: size[v] for v in plan.arguments}
    total = sum(live.values())
    peak, at_peak = total, tuple(live)
    for position, step in enumerate(plan.steps):
        inputs, outputs = _reads_and_writes(step)
        dying = {v for v in inputs if last[v] == position and v in live}
        if isinstance(step, Compute) and _in_place(plan.graph, step.op):
            total -= sum(live.pop(v) for v in dying)
            dying.clear()
        for v in outputs:
            live[v] = size[v]
            total += size[v]
        if total > peak:
            peak, at_peak = total, tuple(v for v, bytes_ in live.items() if bytes_)
        unread = {v for v in outputs if last[v] < 0}
        total -= sum(live.pop(v) for v in dying | unread)
    return Peak(peak, at_peak)


def _reads_and_writes(step: Compute | Reshard) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(step, Compute):
        return step.inputs, step.outputs
    return (step.source,), (step.target,)


def _last_reads(plan: Plan, donated: Collection[int]) -> list[int]:
    """The position of the last step that reads each local value; past the end if it outlives all."""
    end = len(plan.steps)
    last = [-1] * len(plan.values)
    for position, step in enumerate(plan.steps):
        for v in _reads_and_writes(step)[0]:
            last[v] = position
    for v in plan.results:
        last[v] = end
    for index, v in enumerate(plan.arguments):
        if index not in donated:
            last[v] = end
    return last


def _is_free(plan: Plan, local: int) -> bool:
    graph = plan.graph
    op, _ = graph.producer[plan.values[local].value]
    return graph.kinds[op] in _MADE_AT_USE


def _in_place(graph: Graph, op: int) -> bool:
    shape = graph.op_shapes[op]
    return bool(shape.outputs) and any(dims == shape.outputs[0] for dims in shape.inputs)
