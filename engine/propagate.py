"""Which further ops an axis reaches: propagation of one axis to its fixed point.

A pure function of the state, in alternating sweeps (rule 1): forward with arguments first, backward
with results first, until nothing changes. An op without an entry for the axis takes the one factor
that explains all evidence of its operands and of its uses; two possible factors are a conflict, and
then nothing happens. The eight rules are those of the design, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..partir_dialect.rules.base import Kind
from .graph import ARGUMENT, Graph, Sweep
from .state import ANY, NONE, State


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why an op might tile a factor: the neighbour op, the value between them, and its
    dimension."""

    factor: int
    neighbour: int
    value: int
    dim: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """An op that two factors are possible for along an axis, with the evidence of both sides."""

    op: int
    axis: int
    evidence: tuple[Evidence, ...]


def sweep_order(graph: Graph) -> list[int]:
    """Ops in forward order: one for each slot, arguments first, then program order."""
    return [op for op in range(len(graph.kinds)) if graph.slots[op] == op and graph.slot_ops[op]]


def propagate(state: State, axis: int) -> int:
    """Runs the sweeps for one axis; returns how many decisions were made."""
    return _settle(state, axis, state.graph.order)


def _settle(state: State, axis: int, order: Sweep) -> int:
    """Alternates forward and backward sweeps until nothing changes."""
    backward = order[::-1]
    total = 0
    while True:
        made = _sweep(state, axis, order) + _sweep(state, axis, backward)
        total += made
        if not made:
            return total


def _sweep(state: State, axis: int, order: Sweep) -> int:
    entry = state.entry[axis]
    made = 0
    for slot in order:
        if not isinstance(slot, int):  # control flow: to its own fixed point before going on
            made += _settle(state, axis, slot)
        elif entry[slot] == NONE:
            factor = _candidate(state, axis, slot)
            if factor >= 0:
                state.decide(slot, axis, factor)
                made += 1
    return made


def _candidate(state: State, axis: int, slot: int) -> int:
    """The one factor that explains the evidence at the slot, or NONE."""
    found = NONE
    others: list[int] | None = None
    graph = state.graph
    for op in graph.slot_ops[slot]:
        for factor in _factors(state, axis, op):
            if factor == found:
                continue
            if found == NONE:
                found = factor
            else:
                others = [*(others or ()), factor]
    if others is None:
        return found
    return _choose(state, slot, {found, *others})


def _choose(state: State, slot: int, factors: set[int]) -> int:
    """Rule 7: what is not special beats what is; else two candidates are a conflict."""
    op = state.graph.slot_ops[slot][0]
    plain = {f for f in factors if state.kind_of(op, f) is not Kind.SPECIAL}
    chosen = plain or factors
    return next(iter(chosen)) if len(chosen) == 1 else NONE


def _factors(state: State, axis: int, op: int) -> list[int]:
    """The factor of each piece of evidence at the op (hot: plain lists only)."""
    graph = state.graph
    tile = state.tile[axis]
    barrier = state.barrier[axis]
    shape = graph.op_shapes[op]
    out: list[int] = []
    inputs = shape.inputs
    slot = graph.slots[op]
    border = graph.kinds[slot] == ARGUMENT  # an argument, or a result paired with one
    vetoed_pair = border and whole_use_decided(state, axis, graph.results[slot][0])
    if not vetoed_pair:
        for k, value in enumerate(graph.operands[op]):
            d = tile[value]
            if d >= 0 and value not in barrier and not graph.generated[value][d]:
                factor = state.factor_for(op, inputs[k][d], axis)
                if factor >= 0:
                    out.append(factor)
    for r, value in enumerate(graph.results[op]):
        if value in barrier or vetoed_pair:
            continue
        dims = _used_dims(state, axis, value)
        if not dims:
            continue
        if graph.derived[value] and not border and whole_use_decided(state, axis, value):
            continue
        for d in dims:
            factor = state.factor_for(op, shape.outputs[r][d], axis)
            if factor >= 0:
                out.append(factor)
    return out


def _used_dims(state: State, axis: int, value: int) -> list[int]:
    """The dimensions of the value that its decided uses slice along the axis."""
    graph = state.graph
    entry = state.entry[axis]
    slots = graph.slots
    dims: list[int] = []
    for op, k in graph.uses[value]:
        factor = entry[slots[op]]
        if factor >= 0:
            for k2, d in graph.op_shapes[op].where_in[factor]:
                if k2 == k:
                    dims.append(d)
    return dims


def whole_use_decided(state: State, axis: int, value: int) -> bool:
    """Rule 3: whether some use that is decided for the axis takes the value whole; seen through
    undecided ops that only change the shape or type of a parameter."""
    graph = state.graph
    entry = state.entry[axis]
    for op, k in graph.uses[value]:
        slot = graph.slots[op]
        factor = entry[slot]
        if factor == ANY:
            return True
        if factor == NONE:
            results = graph.results[op]
            if (
                len(results) == 1
                and graph.derived[results[0]]
                and whole_use_decided(state, axis, results[0])
            ):
                return True
        elif all(k2 != k for k2, _ in graph.op_shapes[op].where_in[factor]):
            return True
    return False


def evidence_at(state: State, axis: int, slot: int) -> tuple[Evidence, ...]:
    """All evidence at a slot with where it comes from, for reports (not for the sweeps)."""
    graph = state.graph
    found: list[Evidence] = []
    for op in graph.slot_ops[slot]:
        shape = graph.op_shapes[op]
        for k, value in enumerate(graph.operands[op]):
            d = state.tile[axis][value]
            if d >= 0 and value not in state.barrier[axis] and not graph.generated[value][d]:
                factor = state.factor_for(op, shape.inputs[k][d], axis)
                if factor >= 0:
                    found.append(Evidence(factor, graph.producer[value][0], value, d))
        for r, value in enumerate(graph.results[op]):
            if value in state.barrier[axis]:
                continue
            for user, k in graph.uses[value]:
                used = state.entry[axis][graph.slots[user]]
                if used < 0:
                    continue
                for k2, d in graph.op_shapes[user].where_in[used]:
                    factor = state.factor_for(op, shape.outputs[r][d], axis) if k2 == k else NONE
                    if factor >= 0:
                        found.append(Evidence(factor, user, value, d))
    return tuple(found)


def conflicts(state: State, axis: int) -> list[Conflict]:
    """The slots for which more than one factor is possible along the axis."""
    graph = state.graph
    entry = state.entry[axis]
    found: list[Conflict] = []
    for slot in sweep_order(graph):
        if entry[slot] != NONE:
            continue
        factors = {f for op in graph.slot_ops[slot] for f in _factors(state, axis, op)}
        if len(factors) > 1 and _choose(state, slot, factors) == NONE:
            found.append(Conflict(slot, axis, evidence_at(state, axis, slot)))
    return found
