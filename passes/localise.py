"""How an op of a known kind becomes device-local: its attributes, and the rewrites of special
factors.

Precondition: the op's operands and results have their local types. Each entry of the tables here
has its name in `engine/local.py`, the whitelist by which the engine plans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ..engine.local import MASK
from ..partir_dialect.constants import dense_attribute
from ..partir_dialect.stablehlo_attrs import ConvAttr
from .emit import Emitter, tensor_of
from .localise_context import Context, Rewrite, Shape, identity_value
from .localise_exchange import EXCHANGE_REWRITES
from .localise_index import INDEX_REWRITES

# --- attributes that hold sizes -----------------------------------------------------------------


def _array(values: Sequence[int]) -> Attribute:
    return cast("Attribute", DenseArrayBase.from_list(i64, list(values)))


def _values(op: Operation, name: str) -> list[int]:
    array = cast("DenseArrayBase[IntegerType]", op.properties[name])
    return [int(v) for v in array.get_values()]


def _constant(op: Operation, before: Shape) -> None:
    """A splat stays a splat of the local type."""
    value = cast("DenseIntOrFPElementsAttr[Any]", op.properties["value"])
    op.properties["value"] = dense_attribute(op.results[0].type, value.data.data)


def _slice(op: Operation, before: Shape) -> None:
    """A dimension that is tiled and taken whole: its limit is the local size."""
    starts, limits = _values(op, "start_indices"), _values(op, "limit_indices")
    strides = _values(op, "strides") if "strides" in op.properties else [1] * len(starts)
    local = tensor_of(op.operands[0]).get_shape()
    for d, (whole, tile) in enumerate(zip(before, local, strict=True)):
        if (starts[d], limits[d], strides[d]) == (0, whole, 1):
            limits[d] = tile
    op.properties["limit_indices"] = _array(limits)


def _slice_sizes(op: Operation, before: Shape) -> None:
    """A dimension that is tiled is taken whole (or one by one): its slice size is the local
    size."""
    sizes = _values(op, "slice_sizes")
    local = tensor_of(op.operands[0]).get_shape()
    for d, (whole, tile) in enumerate(zip(before, local, strict=True)):
        if whole != tile and sizes[d] == whole:
            sizes[d] = tile
    op.properties["slice_sizes"] = _array(sizes)


def _custom_call(op: Operation, before: Shape) -> None:
    """A sharding rule that is written on a call holds for its global sizes."""
    op.attributes.pop("sdy.sharding_rule", None)


ATTRIBUTES: dict[str, Callable[[Operation, Shape], None]] = {
    "stablehlo.constant": _constant,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.slice": _slice,
    "stablehlo.gather": _slice_sizes,
    "stablehlo.dynamic_slice": _slice_sizes,
}
"""Op kind -> what makes its attributes local, given the global shape of its first operand."""


# --- rewrites of special factors ----------------------------------------------------------------


def _is_wide(element: Attribute) -> bool:
    """Whether positions can be counted in the type."""
    return isinstance(element, IntegerType) and cast("IntegerType", element).width.data >= 32


def _iota(op: Operation, context: Context, emit: Emitter) -> None:
    """Positions within the tile plus the position of the tile; counted in integers, since a float
    of few bits cannot add positions."""
    emit = context.after
    result = op.results[0]
    type_ = tensor_of(result)
    ((_, dim),) = context.shape.where_out[context.factor]
    shape = type_.get_shape()
    element: Attribute = type_.element_type
    counter: Attribute = element if _is_wide(element) else i32
    local = emit.iota(TensorType(counter, shape), dim)
    index = context.index(emit)
    offset = emit.convert(emit.multiply(index, emit.integer(shape[dim])), counter)
    made = emit.convert(emit.add(local, emit.broadcast(offset, shape)), element)
    context.results[0] = made


def _init_once(op: Operation, context: Context, emit: Emitter) -> None:
    """The operand (of a scatter) or the init value (of a reduction) counts on the first device
    only; on the others it is the identity of ⊕."""
    reducer = context.shape.factors[context.factor].reducer
    assert reducer is not None, op
    index = context.index(emit)
    first = emit.compare(index, emit.integer(0), "EQ")
    count = len(op.operands)
    inits = range(len(op.results)) if op.name == "stablehlo.scatter" else range(count // 2, count)
    for k in inits:
        type_ = tensor_of(op.operands[k])
        identity = emit.splat(identity_value(reducer, type_.element_type), type_)
        predicate = emit.broadcast(first, type_.get_shape()) if type_.get_shape() else first
        op.operands[k] = emit.select(predicate, op.operands[k], identity)


def _mask(op: Operation, context: Context, emit: Emitter) -> None:
    """What lies beyond the global size in a reduced dimension becomes the identity of ⊕; of a
    product both sides do, since the other's padding may be infinite."""
    factor = context.shape.factors[context.factor]
    index = context.index(emit)
    product = op.name in ("stablehlo.dot_general", "stablehlo.convolution")
    reducer = "add" if product else factor.reducer or "add"
    for k, dim in context.shape.where_in[context.factor]:
        if op.name == "stablehlo.scatter" and k <= len(op.results):
            continue  # the inputs and the indices: masked updates do nothing wherever they land
        op.operands[k] = masked(emit, op.operands[k], dim, index, factor.size, reducer)


def masked(
    emit: Emitter, value: SSAValue, dim: int, index: SSAValue, size: int, reducer: str
) -> SSAValue:
    """The tile number `index` of a dimension of `size` elements, the identity of ⊕ beyond its
    end."""
    type_ = tensor_of(value)
    shape = type_.get_shape()
    start = emit.multiply(index, emit.integer(shape[dim]))
    left = emit.subtract(emit.integer(size), start)
    position = emit.iota(TensorType(i32, shape), dim)
    inside = emit.compare(position, emit.broadcast(left, shape), "LT")
    return emit.select(
        inside, value, emit.splat(identity_value(reducer, type_.element_type), type_)
    )


def _convolution_groups(op: Operation, context: Context, emit: Emitter) -> None:
    """The groups that a device has: as many as there are in its tile."""
    dims = cast("ConvAttr", op.properties["dimension_numbers"])
    ((_, place),) = [at for at in context.shape.where_in[context.factor] if at[0] == 0]
    features = place == dims.input_feature_dimension
    name = "feature_group_count" if features else "batch_group_count"
    whole = cast("IntegerAttr[IntegerType]", op.properties[name]).value.data
    assert whole == context.shape.factors[context.factor].size, op
    op.properties[name] = IntegerAttr(-(-whole // context.tiles), i64)


REWRITES: dict[str, Rewrite] = {
    "iota": _iota,
    "init_once": _init_once,
    "convolution_groups": _convolution_groups,
    MASK: _mask,
    **INDEX_REWRITES,
    **EXCHANGE_REWRITES,
}
"""Rewrite name -> what it does."""

REPLACING: frozenset[str] = frozenset({"iota", "concatenate"})
"""Rewrites after which the op itself is of no use any more."""
