"""How a rewrite makes StableHLO ops: an emitter with one method for each op it needs.

Ops are put after one another behind a given op (or at the start of a block), with one location.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..partir_dialect import stablehlo
from ..partir_dialect.constants import dense_attribute, from_numpy
from ..partir_dialect.dtypes import numpy_dtype
from ..partir_dialect.stablehlo_attrs import ComparisonDirectionAttr

AnyTensor = TensorType[Attribute]


def tensor_of(value: SSAValue) -> AnyTensor:
    """The tensor type of a value."""
    type_: Attribute = value.type
    assert isinstance(type_, TensorType), type_
    return cast("AnyTensor", type_)


def _array(values: Sequence[int]) -> Attribute:
    return cast("Attribute", DenseArrayBase.from_list(i64, list(values)))


class Emitter:
    """Inserts ops after `after` (None: at the start of the block), in the order in which they are
    made."""

    def __init__(self, block: Block, after: Operation | None, location: LocationAttr) -> None:
        self.block = block
        self.last = after
        self.location = location

    def insert(self, op: Operation) -> Operation:
        """Puts an op behind the last one."""
        op.location = self.location
        if self.last is not None:
            self.block.insert_op_after(op, self.last)
        elif self.block.first_op is not None:
            self.block.insert_op_before(op, self.block.first_op)
        else:
            self.block.add_op(op)
        self.last = op
        return op

    def _make(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        type_: Attribute,
        properties: dict[str, Attribute] | None = None,
    ) -> SSAValue:
        op = cls.create(operands=operands, result_types=[type_], properties=properties or {})
        return self.insert(op).results[0]

    def splat(self, value: float | int | complex, type_: AnyTensor) -> SSAValue:
        """A constant of the type that holds `value` everywhere."""
        dtype = numpy_dtype(type_.element_type)
        data = np.asarray(value).astype(dtype).tobytes()
        return self._make(stablehlo.ConstantOp, [], type_, {"value": dense_attribute(type_, data)})

    def table(self, array: np.ndarray[Any, np.dtype[Any]], element: Attribute) -> SSAValue:
        """A constant with these elements (signless integers for i32, i64)."""
        type_ = TensorType(element, array.shape)
        data = from_numpy(array.astype(numpy_dtype(element))).data.data
        return self._make(stablehlo.ConstantOp, [], type_, {"value": dense_attribute(type_, data)})

    def binary(self, cls: type[Operation], left: SSAValue, right: SSAValue) -> SSAValue:
        """An elementwise op on two values of one type."""
        return self._make(cls, [left, right], left.type)

    def add(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.binary(stablehlo.AddOp, left, right)

    def subtract(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.binary(stablehlo.SubtractOp, left, right)

    def multiply(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.binary(stablehlo.MultiplyOp, left, right)

    def divide(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.binary(stablehlo.DivideOp, left, right)

    def remainder(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.binary(stablehlo.RemainderOp, left, right)

    def convert(self, value: SSAValue, element: Attribute) -> SSAValue:
        """The value with another element type; itself if it has that type."""
        type_ = tensor_of(value)
        if type_.element_type == element:
            return value
        return self._make(stablehlo.ConvertOp, [value], TensorType(element, type_.get_shape()))

    def broadcast(self, scalar: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A scalar everywhere in a tensor of that shape."""
        type_ = TensorType(tensor_of(scalar).element_type, shape)
        dims = {"broadcast_dimensions": cast("Attribute", DenseArrayBase.from_list(i64, []))}
        return self._make(stablehlo.BroadcastInDimOp, [scalar], type_, dims)

    def spread(self, value: SSAValue, dims: Sequence[int], shape: Sequence[int]) -> SSAValue:
        """The value in a tensor of that shape, its dimensions being `dims` of the result."""
        type_ = TensorType(tensor_of(value).element_type, shape)
        return self._make(
            stablehlo.BroadcastInDimOp, [value], type_, {"broadcast_dimensions": _array(dims)}
        )

    def minimum(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.binary(stablehlo.MinimumOp, left, right)

    def maximum(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.binary(stablehlo.MaximumOp, left, right)

    def both(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.binary(stablehlo.AndOp, left, right)

    def clamp(self, value: SSAValue, low: int, high: int) -> SSAValue:
        """The value, no less than `low` and no more than `high`, which its type must hold."""
        type_ = tensor_of(value)
        bounded = self.minimum(value, self.splat(high, type_))
        return self.maximum(bounded, self.splat(low, type_))

    def within(self, value: SSAValue, low: SSAValue | int, high: SSAValue | int) -> SSAValue:
        """Whether low <= value < high, elementwise (i32)."""
        type_ = tensor_of(value)
        bounds = [self.splat(b, type_) if isinstance(b, int) else b for b in (low, high)]
        above = self.compare(value, bounds[0], "GE")
        return self.both(above, self.compare(value, bounds[1], "LT"))

    def compare(self, left: SSAValue, right: SSAValue, direction: str) -> SSAValue:
        """An elementwise comparison (`EQ`, `LT`, …) of integers."""
        type_ = TensorType(IntegerType(1), tensor_of(left).get_shape())
        return self._make(
            stablehlo.CompareOp,
            [left, right],
            type_,
            {"comparison_direction": ComparisonDirectionAttr(direction)},
        )

    def select(self, predicate: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        return self._make(stablehlo.SelectOp, [predicate, yes, no], yes.type)

    def iota(self, type_: AnyTensor, dim: int) -> SSAValue:
        """Positions along a dimension."""
        return self._make(stablehlo.IotaOp, [], type_, {"iota_dimension": IntegerAttr(dim, i64)})

    def dynamic_slice(
        self, value: SSAValue, starts: Sequence[SSAValue], sizes: Sequence[int]
    ) -> SSAValue:
        type_ = TensorType(tensor_of(value).element_type, sizes)
        sizes_ = cast("Attribute", DenseArrayBase.from_list(i64, list(sizes)))
        return self._make(
            stablehlo.DynamicSliceOp, [value, *starts], type_, {"slice_sizes": sizes_}
        )

    def update(self, value: SSAValue, part: SSAValue, starts: Sequence[SSAValue]) -> SSAValue:
        """The value with `part` written at `starts` (i32 or whatever they are, all alike)."""
        return self._make(stablehlo.DynamicUpdateSliceOp, [value, part, *starts], value.type)

    def pad(self, value: SSAValue, dim: int, low: int, high: int) -> SSAValue:
        """The value with zeros around it along one dimension."""
        type_ = tensor_of(value)
        zeros = [0] * len(type_.get_shape())
        shape = list(type_.get_shape())
        shape[dim] += low + high
        fill = self.splat(0, TensorType(type_.element_type, []))
        properties: dict[str, Attribute] = {
            "edge_padding_low": _array([*zeros[:dim], low, *zeros[dim + 1 :]]),
            "edge_padding_high": _array([*zeros[:dim], high, *zeros[dim + 1 :]]),
            "interior_padding": _array(zeros),
        }
        result = TensorType(type_.element_type, shape)
        return self._make(stablehlo.PadOp, [value, fill], result, properties)

    def part(self, value: SSAValue, dim: int, start: int, size: int) -> SSAValue:
        """`size` elements of one dimension from `start` on; the value itself if that is all."""
        type_ = tensor_of(value)
        shape = list(type_.get_shape())
        if (start, size) == (0, shape[dim]):
            return value
        starts, limits = [0] * len(shape), list(shape)
        starts[dim], limits[dim], shape[dim] = start, start + size, size
        properties: dict[str, Attribute] = {
            "start_indices": _array(starts),
            "limit_indices": _array(limits),
            "strides": _array([1] * len(shape)),
        }
        return self._make(
            stablehlo.SliceOp, [value], TensorType(type_.element_type, shape), properties
        )

    def concatenate(self, values: Sequence[SSAValue], dim: int) -> SSAValue:
        """The values one after another along a dimension; a single one is itself."""
        if len(values) == 1:
            return values[0]
        shape = list(tensor_of(values[0]).get_shape())
        shape[dim] = sum(tensor_of(value).get_shape()[dim] for value in values)
        type_ = TensorType(tensor_of(values[0]).element_type, shape)
        properties: dict[str, Attribute] = {"dimension": IntegerAttr(dim, i64)}
        return self._make(stablehlo.ConcatenateOp, values, type_, properties)

    def pad_tail(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The value with zeros at the tail of each dimension up to `shape`; itself if it has it."""
        type_ = tensor_of(value)
        extra = [size - have for size, have in zip(shape, type_.get_shape(), strict=True)]
        if not any(extra):
            return value
        zero = self.splat(0, TensorType(type_.element_type, []))
        none = cast("Attribute", DenseArrayBase.from_list(i64, [0] * len(extra)))
        properties: dict[str, Attribute] = {
            "edge_padding_low": none,
            "edge_padding_high": cast("Attribute", DenseArrayBase.from_list(i64, extra)),
            "interior_padding": none,
        }
        result = TensorType(type_.element_type, shape)
        return self._make(stablehlo.PadOp, [value, zero], result, properties)

    def head(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The first elements in each dimension; the value itself if there are no more."""
        type_ = tensor_of(value)
        if type_.get_shape() == tuple(shape):
            return value
        properties: dict[str, Attribute] = {
            "start_indices": cast("Attribute", DenseArrayBase.from_list(i64, [0] * len(shape))),
            "limit_indices": cast("Attribute", DenseArrayBase.from_list(i64, list(shape))),
            "strides": cast("Attribute", DenseArrayBase.from_list(i64, [1] * len(shape))),
        }
        result = TensorType(type_.element_type, shape)
        return self._make(stablehlo.SliceOp, [value], result, properties)

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        type_ = TensorType(tensor_of(value).element_type, shape)
        return self._make(stablehlo.ReshapeOp, [value], type_)

    def integer(self, value: int) -> SSAValue:
        """An i32 scalar."""
        return self.splat(value, TensorType(i32, []))
