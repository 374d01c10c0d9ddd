"""What does one device compute and move? Operations and bytes of each step of a plan.

XLA's conventions: a multiply-add is two operations, an elementwise op one for each element of its
result, a reduction one for each element of its input; moving data is none. What control flow has in
its regions is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..engine.graph import CARRY_KINDS, PREDICATE
from ..engine.plan import Compute, Plan
from ..partir_dialect.rules.base import Kind

_IDENTITIES = CARRY_KINDS | {PREDICATE, "partir.replicate", "partir.stop"}
_PRODUCTS = frozenset({"stablehlo.dot_general", "stablehlo.convolution"})
_REDUCTIONS = frozenset({"stablehlo.reduce", "stablehlo.reduce_window"})
_MOVES = (
    frozenset(
        f"stablehlo.{name}"
        for name in (
            "bitcast_convert broadcast_in_dim concatenate constant convert copy dynamic_slice "
            "dynamic_update_slice gather get_tuple_element iota optimization_barrier pad reshape "
            "reverse slice transpose tuple"
        ).split()
    )
    | _IDENTITIES
)
_FUSED_MOVES = (
    frozenset(
        f"stablehlo.{name}"
        for name in (
            "bitcast_convert broadcast_in_dim constant convert iota optimization_barrier reshape"
        ).split()
    )
    | _IDENTITIES
)


@dataclass(frozen=True)
class Work:
    """One op on one device: operations, bytes that go through memory, and the element type."""

    flops: int
    bytes: int
    dtype: str


def work_of(plan: Plan, step: Compute) -> Work:
    """The work of one step. Elementwise ops fuse with what makes or reads their values."""
    graph = plan.graph
    kind = graph.kinds[step.op]
    outputs = [plan.values[v] for v in step.outputs]
    inputs = [plan.values[v] for v in step.inputs]
    dtype = graph.dtypes[outputs[0].value] if outputs else "f32"
    elements = sum(prod(value.shape) for value in outputs)
    moved = sum(value.bytes for value in (*inputs, *outputs))
    if kind in _PRODUCTS:
        depth = _contracted(plan, step.op, inputs[1].shape)
        if inputs:
            dtype = graph.dtypes[inputs[0].value]
        return Work(2 * elements * depth, moved, dtype)
    if kind in _REDUCTIONS:
        half = inputs[: len(inputs) // 2]
        return Work(sum(prod(value.shape) for value in half), moved, dtype)
    if kind in _MOVES:
        return Work(0, 0 if kind in _FUSED_MOVES else moved, dtype)
    if _is_elementwise(plan, step.op):
        return Work(elements, 0, dtype)
    return Work(elements, moved, dtype)


def _contracted(plan: Plan, op: int, shape: Sequence[int]) -> int:
    """How many products are summed for one element: the sizes of the second operand's dimensions
    that are in no result."""
    factors = plan.graph.op_shapes[op]
    return prod(
        size
        for size, made_of in zip(shape, factors.inputs[1], strict=True)
        if not any(factors.where_out[f] for f in made_of)
    )


def _is_elementwise(plan: Plan, op: int) -> bool:
    shape = plan.graph.op_shapes[op]
    return bool(shape.outputs) and all(f.kind is Kind.PARALLEL for f in shape.factors)
