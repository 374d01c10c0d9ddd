"""How does a device-local region stand in the device-local program? Its ops take its place.

`sdy.manual_computation` is written for each device already: once its operands and results are
placed as its border says, the body replaces the op, with nothing changed in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from ..partir_dialect.sdy import DimSharding, ManualComputationOp, Sharding


def manual_part(sharding: Sharding, manual: set[str]) -> Sharding:
    """What of a sharding is cut by manual axes, closed."""
    return Sharding(
        sharding.mesh,
        tuple(
            DimSharding(tuple(axis for axis in dim.axes if axis.name in manual))
            for dim in sharding.dims
        ),
    )


def inline_manual(
    op: ManualComputationOp, operands: Sequence[SSAValue], block: Block, after: Operation | None
) -> tuple[list[SSAValue], Operation | None]:
    """Moves the body into `block` behind `after` (at its start if None), on local `operands`;
    the local results and the last op moved. The op itself is left, without its body's ops."""
    body = op.body.block
    for argument, operand in zip(body.args, operands, strict=True):
        argument.replace_all_uses_with(operand)
    last = body.last_op
    assert last is not None
    results = list(last.operands)
    for inner in list(body.ops):
        inner.detach()
        if inner is last:
            inner.erase()
        elif after is None:
            _insert_first(block, inner)
            after = inner
        else:
            block.insert_op_after(inner, after)
            after = inner
    return results, after


def _insert_first(block: Block, op: Operation) -> None:
    if block.first_op is None:
        block.add_op(op)
    else:
        block.insert_op_before(op, block.first_op)
