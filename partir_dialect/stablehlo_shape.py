"""Which StableHLO ops move elements about without looking at them?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerType,
    TensorType,
    i32,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure

from .stablehlo_base import (
    AnyTensor,
    HloOp,
    Int,
    Integers,
    Tensor,
    Value,
    hlo_op,
    int64,
    integers,
    tensor_of,
    with_shape,
)

AnyDense = DenseIntOrFPElementsAttr[IntegerType | IndexType | AnyFloat]


@hlo_op
class ConstantOp(HloOp):
    """A tensor that is known. A splat of any shape holds one element.

    `%c = stablehlo.constant dense<0.0> : tensor<4x8xf32>`
    """

    name = "stablehlo.constant"
    value = prop_def()
    output = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, value: Attribute, result_type: Attribute | None = None) -> None:
        if result_type is None:
            dense = isinstance(value, DenseIntOrFPElementsAttr)
            assert dense, f"a result type is needed for {value}"
            result_type = cast(AnyDense, value).type
        super().__init__(result_types=[result_type], properties={"value": value})


@hlo_op
class IotaOp(HloOp):
    """Counts 0, 1, 2 … along one dimension.

    `%i = stablehlo.iota dim = 0 : tensor<4x8xi32>`
    """

    name = "stablehlo.iota"
    iota_dimension = prop_def(Int)
    output = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, iota_dimension: int, result_type: Attribute) -> None:
        super().__init__(
            result_types=[result_type], properties={"iota_dimension": int64(iota_dimension)}
        )


@hlo_op
class DynamicIotaOp(HloOp):
    """An `iota` whose shape is computed.

    `%i = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<1xi64>) -> tensor<?xi32>`
    """

    name = "stablehlo.dynamic_iota"
    output_shape = operand_def(Tensor)
    iota_dimension = prop_def(Int)
    result = result_def(Tensor)
    traits = traits_def(Pure())


@hlo_op
class BroadcastInDimOp(HloOp):
    """Repeats: dimension i of the operand is dimension `broadcast_dimensions[i]` of the result.

    `%r = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>`
    """

    name = "stablehlo.broadcast_in_dim"
    operand = operand_def(Tensor)
    broadcast_dimensions = prop_def(Integers)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, operand: Value, dims: Sequence[int], result_type: Attribute) -> None:
        super().__init__(
            operands=[operand],
            result_types=[result_type],
            properties={"broadcast_dimensions": integers(dims)},
        )


@hlo_op
class DynamicBroadcastInDimOp(HloOp):
    """A `broadcast_in_dim` whose shape is computed.

    `%r = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [0] : …`
    """

    name = "stablehlo.dynamic_broadcast_in_dim"
    operand = operand_def(Tensor)
    output_dimensions = operand_def(Tensor)
    broadcast_dimensions = prop_def(Integers)
    known_expanding_dimensions = opt_prop_def(Integers)
    known_nonexpanding_dimensions = opt_prop_def(Integers)
    result = result_def(Tensor)
    traits = traits_def(Pure())


@hlo_op
class BroadcastOp(HloOp):
    """Repeats along new leading dimensions (older than `broadcast_in_dim`).

    `%r = stablehlo.broadcast %x, sizes = [4] : (tensor<8xf32>) -> tensor<4x8xf32>`
    """

    name = "stablehlo.broadcast"
    operand = operand_def(Tensor)
    broadcast_sizes = prop_def(Integers)
    result = result_def(Tensor)
    traits = traits_def(Pure())


@hlo_op
class ReshapeOp(HloOp):
    """The same elements in the same (row-major) order, in another shape.

    `%r = stablehlo.reshape %x : (tensor<4x8xf32>) -> tensor<32xf32>`
    """

    name = "stablehlo.reshape"
    operand = operand_def(Tensor)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, operand: Value, shape: Sequence[int] | Attribute) -> None:
        type_ = shape if isinstance(shape, Attribute) else with_shape(tensor_of(operand), shape)
        super().__init__(operands=[operand], result_types=[type_])


@hlo_op
class DynamicReshapeOp(HloOp):
    """A `reshape` whose shape is computed.

    `%r = stablehlo.dynamic_reshape %x, %shape : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>`
    """

    name = "stablehlo.dynamic_reshape"
    operand = operand_def(Tensor)
    output_shape = operand_def(Tensor)
    result = result_def(Tensor)
    traits = traits_def(Pure())


@hlo_op
class TransposeOp(HloOp):
    """Permutes dimensions: dimension i of the result is dimension `permutation[i]` of the operand.

    `%r = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>`
    """

    name = "stablehlo.transpose"
    operand = operand_def(Tensor)
    permutation = prop_def(Integers)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, operand: Value, permutation: Sequence[int]) -> None:
        type_ = tensor_of(operand)
        shape = type_.get_shape()
        super().__init__(
            operands=[operand],
            result_types=[with_shape(type_, [shape[dim] for dim in permutation])],
            properties={"permutation": integers(permutation)},
        )


@hlo_op
class ReverseOp(HloOp):
    """Turns dimensions round.

    `%r = stablehlo.reverse %x, dims = [0] : tensor<4x8xf32>`
    """

    name = "stablehlo.reverse"
    operand = operand_def(Tensor)
    dimensions = prop_def(Integers)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, operand: Value, dimensions: Sequence[int]) -> None:
        super().__init__(
            operands=[operand],
            result_types=[tensor_of(operand)],
            properties={"dimensions": integers(dimensions)},
        )


@hlo_op
class SliceOp(HloOp):
    """Every `strides[i]`-th element from a start up to (not with) a limit.

    `%r = stablehlo.slice %x [0:2, 1:7:2] : (tensor<4x8xf32>) -> tensor<2x3xf32>`
    """

    name = "stablehlo.slice"
    operand = operand_def(Tensor)
    start_indices = prop_def(Integers)
    limit_indices = prop_def(Integers)
    strides = prop_def(Integers)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(
        self,
        operand: Value,
        starts: Sequence[int],
        limits: Sequence[int],
        strides: Sequence[int] | None = None,
    ) -> None:
        steps = [1] * len(starts) if strides is None else list(strides)
        bounds = zip(starts, limits, steps, strict=True)
        shape = [-(-(limit - start) // step) for start, limit, step in bounds]
        super().__init__(
            operands=[operand],
            result_types=[with_shape(tensor_of(operand), shape)],
            properties={
                "start_indices": integers(starts),
                "limit_indices": integers(limits),
                "strides": integers(steps),
            },
        )


@hlo_op
class DynamicSliceOp(HloOp):
    """A slice of fixed size from computed starts, which are clamped so that it lies inside.

    `%r = stablehlo.dynamic_slice %x, %i, %j, sizes = [2, 8] : …`
    """

    name = "stablehlo.dynamic_slice"
    operand = operand_def(Tensor)
    start_indices = var_operand_def(Tensor)
    slice_sizes = prop_def(Integers)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, operand: Value, starts: Sequence[Value], sizes: Sequence[int]) -> None:
        super().__init__(
            operands=[operand, starts],
            result_types=[with_shape(tensor_of(operand), sizes)],
            properties={"slice_sizes": integers(sizes)},
        )


@hlo_op
class DynamicUpdateSliceOp(HloOp):
    """The operand with a part overwritten, from computed starts (clamped as in `dynamic_slice`).

    `%r = stablehlo.dynamic_update_slice %x, %update, %i, %j : …`
    """

    name = "stablehlo.dynamic_update_slice"
    operand = operand_def(Tensor)
    update = operand_def(Tensor)
    start_indices = var_operand_def(Tensor)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, operand: Value, update: Value, starts: Sequence[Value]) -> None:
        super().__init__(operands=[operand, update, starts], result_types=[tensor_of(operand)])


@hlo_op
class RealDynamicSliceOp(HloOp):
    """A `slice` whose starts, limits and strides are computed.

    `%r = stablehlo.real_dynamic_slice %x, %starts, %limits, %strides : …`
    """

    name = "stablehlo.real_dynamic_slice"
    operand = operand_def(Tensor)
    start_indices = operand_def(Tensor)
    limit_indices = operand_def(Tensor)
    strides = operand_def(Tensor)
    result = result_def(Tensor)
    traits = traits_def(Pure())


@hlo_op
class ConcatenateOp(HloOp):
    """Tensors one after the other along a dimension.

    `%r = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>`
    """

    name = "stablehlo.concatenate"
    inputs = var_operand_def(Tensor)
    dimension = prop_def(Int)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, inputs: Sequence[Value], dimension: int) -> None:
        types = [tensor_of(value) for value in inputs]
        shape = list(types[0].get_shape())
        shape[dimension] = sum(type_.get_shape()[dimension] for type_ in types)
        super().__init__(
            operands=[inputs],
            result_types=[with_shape(types[0], shape)],
            properties={"dimension": int64(dimension)},
        )


@hlo_op
class PadOp(HloOp):
    """Puts a value before, after and between the elements of each dimension; may cut as well.

    `%r = stablehlo.pad %x, %zero, low = [1], high = [0], interior = [0] : …`
    """

    name = "stablehlo.pad"
    operand = operand_def(Tensor)
    padding_value = operand_def(Tensor)
    edge_padding_low = prop_def(Integers)
    edge_padding_high = prop_def(Integers)
    interior_padding = prop_def(Integers)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(
        self,
        operand: Value,
        padding_value: Value,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int] | None = None,
    ) -> None:
        between = [0] * len(low) if interior is None else list(interior)
        type_ = tensor_of(operand)
        sizes = zip(type_.get_shape(), low, high, between, strict=True)
        shape = [a + size + max(size - 1, 0) * gap + b for size, a, b, gap in sizes]
        super().__init__(
            operands=[operand, padding_value],
            result_types=[with_shape(type_, shape)],
            properties={
                "edge_padding_low": integers(low),
                "edge_padding_high": integers(high),
                "interior_padding": integers(between),
            },
        )


@hlo_op
class DynamicPadOp(HloOp):
    """A `pad` whose amounts are computed.

    `%r = stablehlo.dynamic_pad %x, %zero, %low, %high, %interior : …`
    """

    name = "stablehlo.dynamic_pad"
    operand = operand_def(Tensor)
    padding_value = operand_def(Tensor)
    edge_padding_low = operand_def(Tensor)
    edge_padding_high = operand_def(Tensor)
    interior_padding = operand_def(Tensor)
    result = result_def(Tensor)
    traits = traits_def(Pure())


@hlo_op
class GetDimensionSizeOp(HloOp):
    """The size of a dimension, as an i32.

    `%n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>`
    """

    name = "stablehlo.get_dimension_size"
    operand = operand_def(Tensor)
    dimension = prop_def(Int)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, operand: Value, dimension: int) -> None:
        super().__init__(
            operands=[operand],
            result_types=[TensorType(i32, [])],
            properties={"dimension": int64(dimension)},
        )


@hlo_op
class SetDimensionSizeOp(HloOp):
    """The operand, of which a dimension is said to have another size.

    `%r = stablehlo.set_dimension_size %x, %n, dim = 0 : …`
    """

    name = "stablehlo.set_dimension_size"
    operand = operand_def(Tensor)
    size = operand_def(Tensor)
    dimension = prop_def(Int)
    result = result_def(Tensor)
    traits = traits_def(Pure())


def scalar_type(value: SSAValue) -> AnyTensor:
    """The type of one element of a value, as a tensor without dimensions."""
    return with_shape(tensor_of(value), [])


SHAPE_OPS: list[type[HloOp]] = [
    ConstantOp, IotaOp, DynamicIotaOp, BroadcastInDimOp, DynamicBroadcastInDimOp, BroadcastOp,
    ReshapeOp, DynamicReshapeOp, TransposeOp, ReverseOp, SliceOp, DynamicSliceOp,
    DynamicUpdateSliceOp, RealDynamicSliceOp, ConcatenateOp, PadOp, DynamicPadOp,
    GetDimensionSizeOp, SetDimensionSizeOp,
]  # fmt: skip
