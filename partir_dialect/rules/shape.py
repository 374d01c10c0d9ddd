"""What do ops that only move or make data say: constants, broadcasts, reshapes, slices, pads?

All are linear for every ⊕ in what they move.
"""

from __future__ import annotations

from math import gcd
from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation

from ..constants import is_splat
from .base import IDEMPOTENT, Kind, Rule, RuleFunction
from .builder import RuleBuilder, Shape, at, out
from .linearity import EVERY, joint, single
from .properties import integer, integers, required
from .reducers import is_identity, sum_reducer


def holds_splat(op: Operation) -> bool:
    """Whether a constant op holds one number everywhere."""
    value = op.properties.get("value")
    return isinstance(value, DenseIntOrFPElementsAttr) and is_splat(
        cast("DenseIntOrFPElementsAttr[Any]", value)
    )


def constant(op: Operation) -> Rule:
    """A splat is the same in every tile; a table is whole (a use may slice it for free)."""
    builder = RuleBuilder(op)
    if holds_splat(op):
        for dim in range(len(builder.results[0])):
            builder.join(out(dim))
    return builder.build()


def iota(op: Operation) -> Rule:
    """The counting dimension needs an offset."""
    builder = RuleBuilder(op)
    counting = integer(op, "iota_dimension")
    for dim in range(len(builder.results[0])):
        if dim == counting:
            builder.join(out(dim), kind=Kind.SPECIAL, rewrite="iota")
        else:
            builder.join(out(dim))
    return builder.build()


def broadcast_in_dim(op: Operation) -> Rule:
    """`([i,k,l])->([i,j,k,l])`; a dimension of one that is expanded is a new factor."""
    builder = RuleBuilder(op)
    source = {d: k for k, d in enumerate(required(op, "broadcast_dimensions"))}
    for dim in range(len(builder.results[0])):
        if dim in source:
            builder.join(at(0, source[dim]), out(dim))
        else:
            builder.join(out(dim))
    return builder.build((single((0,), EVERY),))


def broadcast(op: Operation) -> Rule:
    """The old broadcast: new dimensions in front."""
    builder = RuleBuilder(op)
    new = len(builder.results[0]) - len(builder.operands[0])
    for dim in range(len(builder.results[0])):
        builder.join(*([at(0, dim - new)] if dim >= new else []), out(dim))
    return builder.build((single((0,), EVERY),))


def transpose(op: Operation) -> Rule:
    """`([i,j,k])->([k,i,j])`."""
    builder = RuleBuilder(op)
    for dim, source in enumerate(required(op, "permutation")):
        builder.join(at(0, source), out(dim))
    return builder.build((single((0,), EVERY),))


def reverse(op: Operation) -> Rule:
    """Reversed dimensions: reverse each tile, and the tiles among the devices."""
    builder = RuleBuilder(op)
    turned = set(required(op, "dimensions"))
    for dim in range(len(builder.operands[0])):
        special = dim in turned
        builder.join(
            at(0, dim),
            out(dim),
            kind=Kind.SPECIAL if special else Kind.PARALLEL,
            rewrite="reverse" if special else None,
        )
    return builder.build((single((0,), EVERY),))


def reshape(op: Operation) -> Rule:
    """Common divisors of the major-to-minor products: `([ij])->([i,j])`, `([ij,k])->([i,jk])`."""
    builder = RuleBuilder(op)
    source, target = builder.operands[0], builder.results[0]
    if all(size > 0 for size in (*source, *target)):
        _refine(builder, source, target)
    return builder.build((single((0,), EVERY),))


def _refine(builder: RuleBuilder, source: Shape, target: Shape) -> None:
    """Takes the greatest common factor of the leading rests, over and over. Where rests have none
    (3x4 -> 2x6) everything up to the next boundary that both sides have is blocked."""
    left, right = _Cursor(source), _Cursor(target)
    while left.more() and right.more():
        common = gcd(left.rest, right.rest)
        if common > 1:
            builder.factor(common, at(0, left.dim), out(right.dim))
            left.take(common)
            right.take(common)
        else:
            _block_segment(builder, left, right)


class _Cursor:
    """Where in a shape, major to minor: a dimension, and what is left of it."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.dim = 0
        self.rest = shape[0] if shape else 1

    def more(self) -> bool:
        while self.rest == 1 and self.dim + 1 < len(self.shape):
            self.dim += 1
            self.rest = self.shape[self.dim]
        return self.rest > 1

    def take(self, size: int) -> None:
        self.rest //= size


def _block_segment(builder: RuleBuilder, left: _Cursor, right: _Cursor) -> None:
    """Blocks whole rests, on the side that covers less, until both sides cover the same."""
    covered = [1, 1]
    while covered[0] != covered[1] or covered[0] == 1:
        side = 0 if covered[0] <= covered[1] else 1
        cursor = left if side == 0 else right
        cursor.more()
        covered[side] *= cursor.rest
        place = at(0, cursor.dim) if side == 0 else out(cursor.dim)
        builder.factor(cursor.rest, place, kind=Kind.BLOCKED)
        cursor.take(cursor.rest)


def slice_(op: Operation) -> Rule:
    """Dimensions taken whole are parallel; one element of a tiled dimension is masked and added; a
    longer piece has its tiles exchanged."""
    builder = RuleBuilder(op)
    starts, limits = required(op, "start_indices"), required(op, "limit_indices")
    strides = integers(op, "strides") or (1,) * len(starts)
    for dim, size in enumerate(builder.operands[0]):
        if (starts[dim], limits[dim], strides[dim]) == (0, size, 1):
            builder.join(at(0, dim), out(dim))
        elif builder.results[0][dim] == 1:
            builder.join(
                at(0, dim),
                kind=Kind.SPECIAL,
                reducer=sum_reducer(op.operands[0]),
                rewrite="slice",
            )
        else:
            builder.join(at(0, dim), out(dim), kind=Kind.SPECIAL, rewrite="slice")
    return builder.build((single((0,), EVERY),))


def pad(op: Operation) -> Rule:
    """Untouched dimensions are parallel. Linear for ⊕ if padding n times is padding once: the
    padding value is the identity of ⊕, or ⊕ is idempotent."""
    builder = RuleBuilder(op)
    low, high = required(op, "edge_padding_low"), required(op, "edge_padding_high")
    interior = integers(op, "interior_padding") or (0,) * len(low)
    for dim in range(len(builder.operands[0])):
        if low[dim] == high[dim] == interior[dim] == 0:
            builder.join(at(0, dim), out(dim))
        else:
            builder.join(at(0, dim), out(dim), kind=Kind.SPECIAL, rewrite="pad")
    return builder.build((single((0,), padding_reducers(op)),))


def padding_reducers(op: Operation) -> frozenset[str]:
    """The ⊕ over which a pad may be deferred."""
    return IDEMPOTENT | {r for r in ("add", "mul") if is_identity(op.operands[1], r)}


def concatenate(op: Operation) -> Rule:
    """The dimensions that are not concatenated are parallel."""
    builder = RuleBuilder(op)
    joined = integer(op, "dimension")
    operands = range(len(builder.operands))
    for dim in range(len(builder.results[0])):
        places = [*(at(k, dim) for k in operands), out(dim)]
        if dim == joined and len(builder.operands) > 1:
            builder.join(*places, kind=Kind.SPECIAL, rewrite="concatenate")
        else:
            builder.join(*places)
    return builder.build((joint(operands, EVERY),))


RULES: dict[str, RuleFunction] = {
    "stablehlo.broadcast": broadcast,
    "stablehlo.broadcast_in_dim": broadcast_in_dim,
    "stablehlo.concatenate": concatenate,
    "stablehlo.iota": iota,
    "stablehlo.reshape": reshape,
    "stablehlo.reverse": reverse,
    "stablehlo.slice": slice_,
    "stablehlo.transpose": transpose,
}
CONSTANTS: dict[str, RuleFunction] = {
    "stablehlo.constant": constant,
    "chlo.constant": constant,
    "sdy.constant": constant,
}
