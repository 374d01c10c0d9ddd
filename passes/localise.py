"""How an op of a known kind becomes device-local: its attributes, and the rewrites of special
factors.

Precondition: the op's operands and results have their local types. Each entry of the tables here
has its name in `engine/local.py`, the whitelist by which the engine plans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerType,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ..engine.graph import OpShape
from ..engine.local import MASK
from ..partir_dialect import partir_spmd as partir
from ..partir_dialect.constants import dense_attribute
from ..partir_dialect.dtypes import numpy_dtype
from ..partir_dialect.mesh import Mesh
from .emit import Emitter, tensor_of

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Context:
    """What a local rewrite may look at: the mesh, the op's factors, the axes on the factor (names,
    major to minor), and the global shapes of the operands and results."""

    mesh: Mesh
    shape: OpShape
    factor: int
    axes: tuple[str, ...]
    global_operands: tuple[Shape, ...]
    global_results: tuple[Shape, ...]


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
    """A dimension that is tiled is taken whole: its limit is the local size."""
    limits = _values(op, "limit_indices")
    local = tensor_of(op.operands[0]).get_shape()
    for d, (whole, tile) in enumerate(zip(before, local, strict=True)):
        if whole != tile:
            assert limits[d] == whole, (op, d)
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


ATTRIBUTES: dict[str, Callable[[Operation, Shape], None]] = {
    "stablehlo.constant": _constant,
    "stablehlo.slice": _slice,
    "stablehlo.gather": _slice_sizes,
    "stablehlo.dynamic_slice": _slice_sizes,
}
"""Op kind -> what makes its attributes local, given the global shape of its first operand."""


# --- rewrites of special factors ----------------------------------------------------------------


def device_index(emit: Emitter, mesh: Mesh, axes: Sequence[str]) -> SSAValue:
    """The position of the device along several axes, the first the major one (i32)."""
    index = emit.insert(partir.AxisIndexOp(axes[0])).results[0]
    for axis in axes[1:]:
        index = emit.multiply(index, emit.integer(mesh.size(axis)))
        index = emit.add(index, emit.insert(partir.AxisIndexOp(axis)).results[0])
    return index


def _iota(op: Operation, context: Context, emit: Emitter) -> None:
    """Positions within the tile plus the position of the tile; counted in integers, since a float
    of few bits cannot add positions."""
    result = op.results[0]
    type_ = tensor_of(result)
    ((_, dim),) = context.shape.where_out[context.factor]
    shape = type_.get_shape()
    element: Attribute = type_.element_type
    wide = isinstance(element, IntegerType) and cast("IntegerType", element).width.data >= 32
    counter: Attribute = element if wide else i32
    local = emit.iota(TensorType(counter, shape), dim)
    index = device_index(emit, context.mesh, context.axes)
    offset = emit.convert(emit.multiply(index, emit.integer(shape[dim])), counter)
    made = emit.convert(emit.add(local, emit.broadcast(offset, shape)), element)
    result.replace_all_uses_with(made)


def identity_value(reducer: str, element: Attribute) -> Any:
    """The identity element of ⊕ for an element type, as a Python or NumPy number."""
    if reducer in ("add", "or"):
        return 0
    if reducer == "mul":
        return 1
    low, high = _range(numpy_dtype(element))
    if reducer == "and":  # all bits set
        return high if low == 0 else -1
    return low if reducer == "max" else high


def _range(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The least and the greatest value of a type; for floats the infinities."""
    if dtype == np.bool_:
        return 0, 1
    try:
        info = ml_dtypes.iinfo(dtype)
    except (ValueError, TypeError):
        return -np.inf, np.inf
    return int(info.min), int(info.max)


def _init_once(op: Operation, context: Context, emit: Emitter) -> None:
    """The operand (of a scatter) or the init value (of a reduction) counts on the first device
    only; on the others it is the identity of ⊕."""
    reducer = context.shape.factors[context.factor].reducer
    assert reducer is not None, op
    index = device_index(emit, context.mesh, context.axes)
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
    index = device_index(emit, context.mesh, context.axes)
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


Rewrite = Callable[[Operation, Context, Emitter], None]

REWRITES: dict[str, Rewrite] = {"iota": _iota, "init_once": _init_once, MASK: _mask}
"""Rewrite name -> what it does; ops are emitted before the op (after it where the result
changes)."""

AFTER: frozenset[str] = frozenset({"iota"})
"""Rewrites that replace the result: their ops come behind the op."""
