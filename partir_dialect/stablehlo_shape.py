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
    DYNAMIC,
    HloOp,
    Int,
    Integers,
    Sizes,
    Tensor,
    Value,
    element_of,
    hlo_op,
    int64,
    int_of,
    integers,
    kind_of,
    same_element,
    same_shape,
    same_size,
    same_type,
    shape_of,
    tensor_of,
    types_text,
    values_of,
    with_shape,
)
from .stablehlo_checks import (
    check_constant_shape,
    check_dim,
    check_dims,
    check_length,
    check_result,
    check_sizes_operand,
    check_static,
    constant_sizes,
    product,
)
from .stablehlo_elementwise import INTS, QUANT, REALS, check_kind, check_same_types

AnyDense = DenseIntOrFPElementsAttr[IntegerType | IndexType | AnyFloat]


def type_of(value: Attribute) -> Attribute | None:
    """The type of a constant's value, however it is stored; None if it has none."""
    type_ = getattr(value, "type", None)
    return type_ if isinstance(type_, Attribute) else None


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

    def verify_(self) -> None:
        type_, quantised = type_of(self.value), kind_of(element_of(self.output)) == "quant"
        if type_ is not None and not quantised and not same_type(type_, self.output.type):
            self.fail(f"result must be of type {type_}, got: {self.output.type}")
        check_static(self, self.output)


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

    def verify_(self) -> None:
        check_kind(self, self.output, INTS | REALS | QUANT)
        check_static(self, self.output)
        check_dim(self, "iota_dimension", int_of(self.iota_dimension), len(shape_of(self.output)))


@hlo_op
class DynamicIotaOp(HloOp):
    """An `iota` whose shape is computed.

    `%i = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<1xi64>) -> tensor<?xi32>`
    """

    name = "stablehlo.dynamic_iota"
    output_shape = operand_def(Sizes)
    iota_dimension = prop_def(Int)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_kind(self, self.result, INTS | REALS | QUANT)
        rank = len(shape_of(self.result))
        check_sizes_operand(self, "output_shape", self.output_shape, rank)
        check_constant_shape(self, self.output_shape, self.result)
        check_dim(self, "iota_dimension", int_of(self.iota_dimension), rank)


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

    def verify_(self) -> None:
        check_static(self, self.result)
        dims = self.broadcast_dimensions.get_values()
        check_broadcast(self, self.operand, dims, self.result)


@hlo_op
class DynamicBroadcastInDimOp(HloOp):
    """A `broadcast_in_dim` whose shape is computed.

    `%r = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [0] : …`
    """

    name = "stablehlo.dynamic_broadcast_in_dim"
    operand = operand_def(Tensor)
    output_dimensions = operand_def(Sizes)
    broadcast_dimensions = prop_def(Integers)
    known_expanding_dimensions = opt_prop_def(Integers)
    known_nonexpanding_dimensions = opt_prop_def(Integers)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        rank = len(shape_of(self.result))
        check_sizes_operand(self, "output_dimensions", self.output_dimensions, rank)
        check_broadcast(self, self.operand, self.broadcast_dimensions.get_values(), self.result)
        check_constant_shape(self, self.output_dimensions, self.result)
        wide = constant_sizes(self.output_dimensions)
        if wide is not None:
            dims = self.broadcast_dimensions.get_values()
            check_broadcast_sizes(self, shape_of(self.operand), dims, wide)
        expanding = values_of(self.known_expanding_dimensions)
        known = [*expanding, *values_of(self.known_nonexpanding_dimensions)]
        check_dims(self, "known dimensions", known, len(shape_of(self.operand)))
        for dim in expanding:
            if not same_size(shape_of(self.operand)[dim], 1):
                self.fail(f"an expanding dimension must have size 1, got: {self.operand.type}")


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

    def verify_(self) -> None:
        sizes = self.broadcast_sizes.get_values()
        for size in sizes:
            if size < 0:
                self.fail(f"broadcast_sizes must not be negative, got: {size}")
        wanted = (*sizes, *shape_of(self.operand))
        check_result(self, self.result, wanted, element_of(self.operand))


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

    def verify_(self) -> None:
        check_static(self, self.result)
        check_count(self, self.operand, self.result)


@hlo_op
class DynamicReshapeOp(HloOp):
    """A `reshape` whose shape is computed.

    `%r = stablehlo.dynamic_reshape %x, %shape : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>`
    """

    name = "stablehlo.dynamic_reshape"
    operand = operand_def(Tensor)
    output_shape = operand_def(Sizes)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_sizes_operand(self, "output_shape", self.output_shape, len(shape_of(self.result)))
        check_count(self, self.operand, self.result)
        check_constant_shape(self, self.output_shape, self.result)
        counts = product(shape_of(self.operand)), constant_sizes(self.output_shape)
        if counts[1] is not None and not same_size(counts[0], product(counts[1])):
            self.fail(f"output_shape must have {counts[0]} elements, got: {list(counts[1])}")


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

    def verify_(self) -> None:
        shape, permutation = shape_of(self.operand), self.permutation.get_values()
        if sorted(permutation) != list(range(len(shape))):
            self.fail(
                f"permutation must be one of {len(shape)} dimensions, got: {list(permutation)}"
            )
        wanted = [shape[dim] for dim in permutation]
        check_result(self, self.result, wanted, element_of(self.operand))


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

    def verify_(self) -> None:
        check_dims(self, "dimensions", self.dimensions.get_values(), len(shape_of(self.operand)))
        check_same_types(self)


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

    def verify_(self) -> None:
        shape = shape_of(self.operand)
        lists = (
            ("start_indices", self.start_indices.get_values()),
            ("limit_indices", self.limit_indices.get_values()),
            ("strides", self.strides.get_values()),
        )
        for name, values in lists:
            check_length(self, name, values, len(shape))
        wanted: list[int] = []
        for size, start, limit, step in zip(shape, *(v for _, v in lists), strict=True):
            if start < 0 or start > limit:
                self.fail(f"start must be in [0, {limit}], got: {start}")
            if 0 <= size < limit:
                self.fail(f"limit must be at most {size}, got: {limit}")
            if step < 1:
                self.fail(f"stride must be at least 1, got: {step}")
            wanted.append(-(-(limit - start) // step))
        check_result(self, self.result, wanted, element_of(self.operand))


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

    def verify_(self) -> None:
        shape, sizes = shape_of(self.operand), self.slice_sizes.get_values()
        check_starts(self, self.start_indices, len(shape))
        check_length(self, "slice_sizes", sizes, len(shape))
        for size, bound in zip(sizes, shape, strict=True):
            if size < 0 or 0 <= bound < size:
                self.fail(f"slice_sizes must be in [0, {bound}], got: {size}")
        check_result(self, self.result, sizes, element_of(self.operand))


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

    def verify_(self) -> None:
        shape, part = shape_of(self.operand), shape_of(self.update)
        if len(part) != len(shape) or element_of(self.update) != element_of(self.operand):
            self.fail(f"update must be of the kind of {self.operand.type}, got: {self.update.type}")
        check_starts(self, self.start_indices, len(shape))
        for size, bound in zip(part, shape, strict=True):
            if 0 <= bound < size:
                self.fail(f"update must have at most size {bound}, got: {self.update.type}")
        if not same_type(self.operand.type, self.result.type):
            self.fail(f"result must be of type {self.operand.type}, got: {self.result.type}")


@hlo_op
class RealDynamicSliceOp(HloOp):
    """A `slice` whose starts, limits and strides are computed.

    `%r = stablehlo.real_dynamic_slice %x, %starts, %limits, %strides : …`
    """

    name = "stablehlo.real_dynamic_slice"
    operand = operand_def(Tensor)
    start_indices = operand_def(Sizes)
    limit_indices = operand_def(Sizes)
    strides = operand_def(Sizes)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        rank = len(shape_of(self.operand))
        lists = (self.start_indices, self.limit_indices, self.strides)
        for name, value in zip(("start_indices", "limit_indices", "strides"), lists, strict=True):
            check_sizes_operand(self, name, value, rank)
            if element_of(value) != element_of(self.start_indices):
                self.fail(f"starts, limits and strides must be of one type, got: {value.type}")
        check_result(self, self.result, [DYNAMIC] * rank, element_of(self.operand))


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

    def verify_(self) -> None:
        if not self.inputs:
            self.fail("inputs must have at least 1 value, got: 0")
        first, dim = shape_of(self.inputs[0]), int_of(self.dimension)
        check_dim(self, "dimension", dim, len(first))
        total = 0
        for value in self.inputs:
            shape = shape_of(value)
            rest = (*shape[:dim], first[dim], *shape[dim + 1 :])
            alike = len(shape) == len(first) and same_shape(rest, first)
            if not alike or element_of(value) != element_of(self.inputs[0]):
                self.fail(f"inputs must fit {self.inputs[0].type}, got: {value.type}")
            total = DYNAMIC if DYNAMIC in (total, shape[dim]) else total + shape[dim]
        wanted = (*first[:dim], total, *first[dim + 1 :])
        check_result(self, self.result, wanted, element_of(self.inputs[0]))


def padded_shape(
    op: HloOp,
    shape: Sequence[int],
    lows: Sequence[int],
    highs: Sequence[int],
    gaps: Sequence[int],
) -> tuple[int, ...]:
    """The shape after padding; fails if there is less than nothing of a dimension."""
    wanted: list[int] = []
    for size, low, high, gap in zip(shape, lows, highs, gaps, strict=True):
        if gap < 0:
            op.fail(f"interior_padding must not be negative, got: {gap}")
        padded = low + size + max(size - 1, 0) * gap + high
        if size != DYNAMIC and padded < 0:
            op.fail(f"a padded size must not be negative, got: {padded}")
        wanted.append(DYNAMIC if size == DYNAMIC else padded)
    return tuple(wanted)


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

    def verify_(self) -> None:
        shape = shape_of(self.operand)
        check_result(self, self.padding_value, (), element_of(self.operand), "padding_value")
        lists = (
            ("edge_padding_low", self.edge_padding_low.get_values()),
            ("edge_padding_high", self.edge_padding_high.get_values()),
            ("interior_padding", self.interior_padding.get_values()),
        )
        for name, values in lists:
            check_length(self, name, values, len(shape))
        wanted = padded_shape(self, shape, *(values for _, values in lists))
        check_result(self, self.result, wanted, element_of(self.operand))


@hlo_op
class DynamicPadOp(HloOp):
    """A `pad` whose amounts are computed.

    `%r = stablehlo.dynamic_pad %x, %zero, %low, %high, %interior : …`
    """

    name = "stablehlo.dynamic_pad"
    operand = operand_def(Tensor)
    padding_value = operand_def(Tensor)
    edge_padding_low = operand_def(Sizes)
    edge_padding_high = operand_def(Sizes)
    interior_padding = operand_def(Sizes)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        rank = len(shape_of(self.operand))
        check_result(self, self.padding_value, (), element_of(self.operand), "padding_value")
        for name in ("edge_padding_low", "edge_padding_high", "interior_padding"):
            check_sizes_operand(self, name, getattr(self, name), rank)
        lists = [
            constant_sizes(value) or (DYNAMIC,) * rank
            for value in (self.edge_padding_low, self.edge_padding_high, self.interior_padding)
        ]
        for gap in constant_sizes(self.interior_padding) or ():
            if gap < 0:
                self.fail(f"interior_padding must not be negative, got: {gap}")
        known = all(constant_sizes(value) is not None for value in self.operands[2:])
        wanted = padded_shape(self, shape_of(self.operand), *lists) if known else (DYNAMIC,) * rank
        check_result(self, self.result, wanted, element_of(self.operand))


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

    def verify_(self) -> None:
        check_dim(self, "dimension", int_of(self.dimension), len(shape_of(self.operand)))
        check_result(self, self.result, (), i32)


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

    def verify_(self) -> None:
        shape, dim = shape_of(self.operand), int_of(self.dimension)
        check_dim(self, "dimension", dim, len(shape))
        check_result(self, self.size, (), i32, "size")
        wanted = (*shape[:dim], DYNAMIC, *shape[dim + 1 :])
        check_result(self, self.result, wanted, element_of(self.operand))


def check_broadcast(op: HloOp, operand: SSAValue, dims: Sequence[int], result: SSAValue) -> None:
    """Fails unless the operand's dimensions can be these of the result."""
    shape, wide = shape_of(operand), shape_of(result)
    check_length(op, "broadcast_dimensions", dims, len(shape))
    check_dims(op, "broadcast_dimensions", dims, len(wide))
    if not same_element(element_of(operand), element_of(result)):
        op.fail(f"result must have elements of {element_of(operand)}, got: {result.type}")
    check_broadcast_sizes(op, shape, dims, wide)


def check_broadcast_sizes(
    op: HloOp, shape: Sequence[int], dims: Sequence[int], wide: Sequence[int]
) -> None:
    """Fails unless each size is 1 or that of its dimension in the wide shape."""
    for size, dim in zip(shape, dims, strict=True):
        if size != 1 and not same_size(size, wide[dim]):
            op.fail(f"size {size} must be 1 or that of dimension {dim}, got: {wide[dim]}")


def check_count(op: HloOp, operand: SSAValue, result: SSAValue) -> None:
    """Fails unless operand and result have as many elements, of one type."""
    if not same_element(element_of(operand), element_of(result)):
        op.fail(f"result must have elements of {element_of(operand)}, got: {result.type}")
    counts = product(shape_of(operand)), product(shape_of(result))
    if not same_size(*counts):
        op.fail(f"result must have {counts[0]} elements, got: {counts[1]}")


def check_starts(op: HloOp, starts: Sequence[SSAValue], rank: int) -> None:
    """Fails unless there is a scalar integer for each dimension, all of one type."""
    check_length(op, "start_indices", starts, rank)
    for start in starts:
        element = element_of(start)
        if shape_of(start) or kind_of(element) not in ("int", "uint"):
            op.fail(f"start_indices must be scalar integers, got: {start.type}")
        if element != element_of(starts[0]):
            op.fail(f"start_indices must be of one type, got: {types_text(s.type for s in starts)}")


SHAPE_OPS: list[type[HloOp]] = [
    ConstantOp, IotaOp, DynamicIotaOp, BroadcastInDimOp, DynamicBroadcastInDimOp, BroadcastOp,
    ReshapeOp, DynamicReshapeOp, TransposeOp, ReverseOp, SliceOp, DynamicSliceOp,
    DynamicUpdateSliceOp, RealDynamicSliceOp, ConcatenateOp, PadOp, DynamicPadOp,
    GetDimensionSizeOp, SetDimensionSizeOp,
]  # fmt: skip
