"""How does a tile answer indices that are global? gather, scatter, dynamic slices, one-element
slices.

A gather takes what is in the tile and zero for the rest, and the parts are added; a scatter drops
the updates that fall outside the tile. Starts and indices clamp on the *global* size, before the
position of the tile is taken away; values are chosen, never multiplied by a mask (NaN, inf).
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerType, TensorType, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ..partir_dialect.dtypes import numpy_dtype
from ..partir_dialect.rules.properties import required
from ..partir_dialect.stablehlo_attrs import GatherAttr, ScatterAttr
from .emit import Emitter, tensor_of
from .localise_context import Context, Rewrite, value_range


def widened(emit: Emitter, value: SSAValue) -> SSAValue:
    """Integers of at least 32 bits, so that any local position can be written in them."""
    element = tensor_of(value).element_type
    narrow = cast("IntegerType", element).width.data < 32
    return emit.convert(value, i32) if narrow else value


def bounded(emit: Emitter, value: SSAValue, high: int) -> SSAValue:
    """The value clamped to 0 … high in its own type (at least 32 bits)."""
    _, most = value_range(numpy_dtype(tensor_of(value).element_type))
    return emit.clamp(value, 0, min(high, most))


def local_position(emit: Emitter, context: Context, clamped: SSAValue, size: int) -> SSAValue:
    """Positions (i32) relative to the device's tile of `size` elements."""
    start = emit.multiply(context.index(emit), emit.integer(size))
    position = emit.convert(clamped, i32)
    shape = tensor_of(position).get_shape()
    return emit.subtract(position, emit.broadcast(start, shape) if shape else start)


class _Indices:
    """One component of an index tensor (at least 32 bits wide), out of and back into it."""

    def __init__(self, emit: Emitter, value: SSAValue, vector_dim: int, number: int) -> None:
        self.emit = emit
        self.value = widened(emit, value)
        self.vector_dim = vector_dim
        self.number = number
        shape = tensor_of(self.value).get_shape()
        self.implicit = vector_dim == len(shape)
        self.count = 1 if self.implicit else shape[vector_dim]
        self.batch = shape if self.implicit else (*shape[:vector_dim], *shape[vector_dim + 1 :])

    def get(self) -> SSAValue:
        """The component, with the batch dimensions only."""
        if self.implicit:
            return self.value
        one = self.emit.part(self.value, self.vector_dim, self.number, 1)
        return self.emit.reshape(one, self.batch)

    def put(self, component: SSAValue) -> SSAValue:
        """The index tensor with another component."""
        component = self.emit.convert(component, tensor_of(self.value).element_type)
        if self.implicit:
            return component
        d = self.vector_dim
        shape = list(tensor_of(self.value).get_shape())
        shape[d] = 1
        parts = [self.emit.reshape(component, shape)]
        if self.number:
            parts.insert(0, self.emit.part(self.value, d, 0, self.number))
        if behind := self.count - self.number - 1:
            parts.append(self.emit.part(self.value, d, self.number + 1, behind))
        return self.emit.concatenate(parts, d)


def _gather_index(op: Operation, context: Context, emit: Emitter) -> None:
    """Indices in the tile are shifted, others read anything, which becomes zero."""
    dims = cast("GatherAttr", op.properties["dimension_numbers"])
    ((_, d),) = context.shape.where_in[context.factor]
    tile = tensor_of(op.operands[0]).get_shape()[d]
    number = tuple(dims.start_index_map).index(d)
    indices = _Indices(emit, op.operands[1], dims.index_vector_dim, number)
    clamped = bounded(emit, indices.get(), context.global_operands[0][d] - 1)
    position = local_position(emit, context, clamped, tile)
    inside = emit.within(position, 0, tile)
    op.operands[1] = indices.put(emit.clamp(position, 0, tile - 1))
    op.properties["indices_are_sorted"] = BoolAttr.from_bool(False)
    result = tensor_of(op.results[0])
    shape = result.get_shape()
    batch = [d for d in range(len(shape)) if d not in tuple(dims.offset_dims)]
    behind = context.after
    mask = behind.spread(inside, batch, shape)
    context.results[0] = behind.select(mask, context.results[0], behind.splat(0, result))


def _scatter_index(op: Operation, context: Context, emit: Emitter) -> None:
    """Indices in the tile are shifted; all others become one that is out of bounds, where an update
    does nothing."""
    count = len(op.results)
    dims = cast("ScatterAttr", op.properties["scatter_dimension_numbers"])
    d = context.shape.where_in[context.factor][0][1]
    tile = tensor_of(op.operands[0]).get_shape()[d]
    number = tuple(dims.scatter_dims_to_operand_dims).index(d)
    indices = _Indices(emit, op.operands[count], dims.index_vector_dim, number)
    given = indices.get()
    clamped = bounded(emit, given, context.global_operands[0][d] - 1)
    valid = emit.compare(given, clamped, "EQ")
    position = local_position(emit, context, clamped, tile)
    inside = emit.both(valid, emit.within(position, 0, tile))
    outside = emit.splat(tile, tensor_of(position))
    op.operands[count] = indices.put(emit.select(inside, position, outside))
    for flag in ("indices_are_sorted", "unique_indices"):
        op.properties[flag] = BoolAttr.from_bool(False)


def one_element(op: Operation, context: Context, emit: Emitter) -> None:
    """A slice of one element: the device that has it gives it, the others zero."""
    ((_, d),) = context.shape.where_in[context.factor]
    starts, limits = (list(required(op, name)) for name in ("start_indices", "limit_indices"))
    tile = tensor_of(op.operands[0]).get_shape()[d]
    owner, starts[d] = divmod(starts[d], tile)
    limits[d] = starts[d] + 1
    op.properties["start_indices"] = _array(starts)
    op.properties["limit_indices"] = _array(limits)
    behind = context.after
    result = tensor_of(op.results[0])
    mine = behind.compare(context.index(behind), behind.integer(owner), "EQ")
    mask = behind.broadcast(mine, result.get_shape())
    context.results[0] = behind.select(mask, context.results[0], behind.splat(0, result))


def _array(values: list[int]) -> Attribute:
    return cast("Attribute", DenseArrayBase.from_list(i64, values))


def _starts(op: Operation, emit: Emitter, first: int) -> None:
    """All start operands get a type wide enough for local positions."""
    for k in range(first, len(op.operands)):
        op.operands[k] = widened(emit, op.operands[k])


def _dynamic_slice(op: Operation, context: Context, emit: Emitter) -> None:
    """The slice of the tile with as many zeros on either side as the slice is long."""
    ((_, d),) = context.shape.where_in[context.factor]
    _starts(op, emit, 1)
    size = required(op, "slice_sizes")[d]
    tile = tensor_of(op.operands[0]).get_shape()[d]
    start = op.operands[1 + d]
    clamped = bounded(emit, start, context.global_operands[0][d] - size)
    position = emit.clamp(local_position(emit, context, clamped, tile), -size, tile)
    position = emit.add(position, emit.integer(size))
    op.operands[0] = emit.pad(op.operands[0], d, size, size)
    op.operands[1 + d] = emit.convert(position, tensor_of(start).element_type)


def _dynamic_update_slice(op: Operation, context: Context, emit: Emitter) -> None:
    """The part of the update that falls into the tile, over what is there."""
    d = context.shape.where_in[context.factor][0][1]
    _starts(op, emit, 2)
    tile, update = (list(tensor_of(op.operands[k]).get_shape()) for k in (0, 1))
    start = op.operands[2 + d]
    element = tensor_of(start).element_type
    width, size = min(tile[d], update[d]), update[d]
    clamped = bounded(emit, start, context.global_operands[0][d] - size)
    wanted = local_position(emit, context, clamped, tile[d])
    position = emit.clamp(wanted, 0, tile[d] - width)
    shift = emit.subtract(position, wanted)  # which element of the update comes first
    starts = list(op.operands[2:])
    starts[d] = emit.convert(position, element)
    window = [*update[:d], width, *update[d + 1 :]]
    old = emit.dynamic_slice(op.operands[0], starts, window)
    offset = emit.add(emit.clamp(shift, -width, size), emit.integer(width))
    offsets = [emit.integer(0)] * len(update)
    offsets[d] = offset
    new = emit.dynamic_slice(emit.pad(op.operands[1], d, width, width), offsets, window)
    number = emit.add(emit.iota(TensorType(i32, window), d), emit.broadcast(shift, window))
    op.operands[1] = emit.select(emit.within(number, 0, size), new, old)
    op.operands[2 + d] = starts[d]


INDEX_REWRITES: dict[str, Rewrite] = {
    "gather_index": _gather_index,
    "scatter_index": _scatter_index,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
}
