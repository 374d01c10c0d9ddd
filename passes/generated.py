"""Which values are made from nothing, and does each of their users have its own?

A constant, an iota or the broadcast of a scalar costs nothing to make and can be made in any tile.
Users that share one would have to agree on its placement, so each use gets its own copy.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from ..partir_dialect.rules.shape import CONSTANTS, holds_splat
from .inline import clone_op

_SMALL = 64  # elements: a larger list of numbers is data, and is not copied
PLACED_REGIONS = frozenset({"stablehlo.while", "stablehlo.case", "stablehlo.if"})


def _is_small_constant(op: Operation) -> bool:
    if op.name not in CONSTANTS:
        return False
    type_ = op.results[0].type
    return holds_splat(op) or (
        isinstance(type_, TensorType) and 0 <= prod(type_.get_shape()) <= _SMALL
    )


def is_generated(op: Operation) -> bool:
    """Whether `op` is a small or splat constant, an iota, or the broadcast of a scalar."""
    if op.name == "stablehlo.iota":
        return True
    if op.name == "stablehlo.broadcast_in_dim":
        type_ = op.operands[0].type
        return isinstance(type_, TensorType) and type_.get_num_dims() == 0
    return _is_small_constant(op)


def _may_move_into(block: Block, user: Operation) -> bool:
    """Whether a copy may stand beside `user`: only bodies of control flow lie between."""
    where = user.parent
    while where is not None and where is not block:
        holder = where.parent_op()
        if holder is None or holder.name not in PLACED_REGIONS:
            return False
        where = holder.parent
    return where is block


def _copy_for(value: SSAValue, user: Operation) -> SSAValue:
    op = value.owner
    assert isinstance(op, Operation)
    values: dict[SSAValue, SSAValue] = {}
    copies = [clone_op(op, values)]
    scalar = op.operands[0].owner if op.operands else None
    if isinstance(scalar, Operation) and _is_small_constant(scalar):  # it comes along
        copies.insert(0, clone_op(scalar, values))
        copies[1].operands[0] = copies[0].results[0]
    block = op.parent
    assert block is not None
    near = _may_move_into(block, user)
    home = user.parent if near else block
    assert home is not None
    home.insert_ops_before(copies, user if near else op)
    return copies[-1].results[0]


def give_each_use_its_own(root: Operation) -> int:
    """Copies the generated values inside `root` until each has one use; how many copies there are.

    A copy stands right before its user. Users inside the body of a reduce or a sort share one copy
    outside it. What nobody uses any more is left to dead-code elimination.
    """
    count = 0
    for op in [op for op in root.walk() if is_generated(op)][::-1]:
        value = op.results[0]
        for use in list(value.uses)[::-1][1:] if value.has_more_than_one_use() else ():
            use.operation.operands[use.index] = _copy_for(value, use.operation)
            count += 1
    return count
