"""How much memory does a device need at the worst moment, and for which values?

Liveness over the plan in its schedule: a value lives from the step that makes it to the last that
reads it, arguments from the beginning, results to the end, arguments that are not donated always.
Constants, iotas and broadcasts are made where they are used and take no memory; an elementwise op
writes into an operand that dies there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..engine.graph import ENTER, Graph
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
    for step in plan.steps:
        if isinstance(step, Compute) and plan.graph.kinds[step.op] == ENTER:
            for v in step.outputs[1:]:  # what the condition reads is what the body reads
                size[v] = 0
    ending: dict[int, list[int]] = {}
    for v, position in enumerate(last):
        ending.setdefault(position, []).append(v)
    live: dict[int, int] = {v: size[v] for v in plan.arguments}
    total = sum(live.values())
    peak, at_peak = total, tuple(live)
    for position, step in enumerate(plan.steps):
        inputs, outputs = _reads_and_writes(step)
        over = [v for v in ending.get(position, ()) if v in live]
        if isinstance(step, Compute) and _in_place(plan.graph, step.op):
            total -= sum(live.pop(v) for v in over if v in inputs)
        for v in outputs:
            live[v] = size[v]
            total += size[v]
        if total > peak:
            peak, at_peak = total, tuple(v for v, bytes_ in live.items() if bytes_)
        unread = [v for v in outputs if last[v] < 0]
        total -= sum(live.pop(v, 0) for v in (*over, *unread))
    return Peak(peak, at_peak)


def _reads_and_writes(step: Compute | Reshard) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(step, Compute):
        return step.reads, step.outputs
    return (step.source,), (step.target,)


def _last_reads(plan: Plan, donated: Collection[int]) -> list[int]:
    """The position of the last step that reads each local value; the end if it outlives all.

    What a loop reads from outside lives until the loop is over; its carry is replaced by what
    the body yields.
    """
    graph, end = plan.graph, len(plan.steps)
    over = _ends_of_regions(plan)
    last = [-1] * len(plan.values)
    made_in = [0] * len(plan.values)
    carried: set[int] = set()
    for position, step in enumerate(plan.steps):
        region = _region(graph, step)
        reads, writes = _reads_and_writes(step)
        for v in writes:
            made_in[v] = region
        if isinstance(step, Compute) and graph.kinds[step.op] == ENTER:
            carried.update(writes)
        for v in reads:
            last[v] = max(last[v], position)
            around = region
            while around and around != made_in[v]:
                outside = graph.regions[around].parent
                if v in carried and outside == made_in[v]:
                    break  # every iteration has its own
                last[v] = max(last[v], over[around])
                around = outside
    for v in plan.results:
        last[v] = end
    for index, v in enumerate(plan.arguments):
        if index not in donated:
            last[v] = end
    return last


def _region(graph: Graph, step: Compute | Reshard) -> int:
    return graph.region_of[step.op] if isinstance(step, Compute) else step.region


def _ends_of_regions(plan: Plan) -> dict[int, int]:
    """The position of the last step in each region, the regions within it included."""
    over: dict[int, int] = {}
    for position, step in enumerate(plan.steps):
        region = _region(plan.graph, step)
        while region:
            over[region] = position
            region = plan.graph.regions[region].parent
    return over


def _is_free(plan: Plan, local: int) -> bool:
    graph = plan.graph
    op, _ = graph.producer[plan.values[local].value]
    return graph.kinds[op] in _MADE_AT_USE


def _in_place(graph: Graph, op: int) -> bool:
    shape = graph.op_shapes[op]
    return bool(shape.outputs) and any(dims == shape.outputs[0] for dims in shape.inputs)
