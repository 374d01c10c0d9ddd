"""Which StableHLO ops multiply and sum? Dots, convolutions, transforms, solvers, batch norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import AnyFloat, ArrayAttr, ComplexType, Float32Type, Float64Type
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from .stablehlo_attrs import (
    ConvAttr,
    ConvNumbers,
    DotAlgorithmAttr,
    DotAttr,
    FftTypeAttr,
    PrecisionAttr,
    TransposeAttr,
)
from .stablehlo_base import (
    DYNAMIC,
    Array,
    Flag,
    Flags,
    Float32,
    HloOp,
    Int,
    Integers,
    Tensor,
    Text,
    Value,
    element_of,
    hlo_op,
    int_of,
    kind_of,
    same_shape,
    same_size,
    same_type,
    shape_of,
    tensor_of,
    types_text,
    with_element,
    with_shape,
)
from .stablehlo_checks import (
    check_dim,
    check_dims,
    check_length,
    check_precision,
    check_result,
    check_shape,
    padding_pairs,
    window_of,
)
from .stablehlo_elementwise import FLOATS, QUANT, REALS, check_kind, check_same_types


def precisions(words: Sequence[str]) -> ArrayAttr[PrecisionAttr] | None:
    """A `precision_config` of words such as HIGHEST; None without any."""
    return ArrayAttr([PrecisionAttr(word) for word in words]) if words else None


@hlo_op
class DotGeneralOp(HloOp):
    """Multiplies and sums over the contracting dimensions, for each batch element.

    The result has the batching dimensions, then the free ones of the left, then of the right.
    `%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : …`
    """

    name = "stablehlo.dot_general"
    lhs = operand_def(Tensor)
    rhs = operand_def(Tensor)
    dot_dimension_numbers = prop_def(DotAttr)
    precision_config = opt_prop_def(Array)
    algorithm = opt_prop_def(DotAlgorithmAttr)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(
        self,
        lhs: Value,
        rhs: Value,
        *,
        contracting: tuple[Sequence[int], Sequence[int]],
        batching: tuple[Sequence[int], Sequence[int]] = ((), ()),
        element_type: Attribute | None = None,
        precision: Sequence[str] = (),
    ) -> None:
        numbers = DotAttr.of(
            lhs_batching_dimensions=batching[0],
            rhs_batching_dimensions=batching[1],
            lhs_contracting_dimensions=contracting[0],
            rhs_contracting_dimensions=contracting[1],
        )
        left, right = tensor_of(lhs), tensor_of(rhs)
        type_ = with_shape(left, dot_shape(left.get_shape(), right.get_shape(), numbers))
        super().__init__(
            operands=[lhs, rhs],
            result_types=[with_element(type_, element_type) if element_type else type_],
            properties={
                "dot_dimension_numbers": numbers,
                "precision_config": precisions(precision),
            },
        )

    def verify_(self) -> None:
        numbers = self.dot_dimension_numbers
        check_dot_numbers(self, shape_of(self.lhs), shape_of(self.rhs), numbers)
        check_precision(self, self.precision_config)
        if self.algorithm is not None:
            check_algorithm(self, self.algorithm, self.precision_config)
        check_shape(self, self.result, dot_shape(shape_of(self.lhs), shape_of(self.rhs), numbers))


def check_dot_numbers(op: HloOp, lhs: Sequence[int], rhs: Sequence[int], numbers: DotAttr) -> None:
    """Fails unless batching and contracting dimensions pair and have one size each."""
    sides = (
        (lhs, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
        (rhs, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
    )
    for shape, batching, contracting in sides:
        check_dims(op, "batching and contracting dimensions", [*batching, *contracting], len(shape))
    for kind in (1, 2):
        left, right = sides[0][kind], sides[1][kind]
        check_length(op, "dimensions of the right operand", right, len(left))
        for mine, other in zip(left, right, strict=True):
            if not same_size(lhs[mine], rhs[other]):
                op.fail(
                    f"dimensions {mine} and {other} must have one size, "
                    f"got: {lhs[mine]}, {rhs[other]}"
                )


_SMALL_FLOATS = (
    "f8E5M2",
    "f8E4M3FN",
    "f8E4M3",
    "f8E3M4",
    "f8E5M2FNUZ",
    "f8E4M3FNUZ",
    "f8E4M3B11FNUZ",
)
_ALGORITHMS = {
    ("f16", "f16"): (1,),
    ("f16", "f32"): (1,),
    ("bf16", "bf16"): (1,),
    ("bf16", "f32"): (1, 3, 6, 9),
    ("tf32", "f32"): (1, 3),
    ("f32", "f32"): (1,),
    ("f64", "f64"): (1,),
}
"""By operand and accumulation type: how many multiplications an algorithm may take."""


def check_algorithm(
    op: HloOp, algorithm: DotAlgorithmAttr, precision: ArrayAttr[Attribute] | None
) -> None:
    """Fails unless some hardware multiplies like this, and no precision is asked for besides."""
    lhs, rhs = str(algorithm.lhs_precision_type), str(algorithm.rhs_precision_type)
    accumulation = str(algorithm.accumulation_type)
    if lhs in _SMALL_FLOATS and rhs in _SMALL_FLOATS:
        known = accumulation == "f32" and algorithm.num_primitive_operations == 1
    else:
        counts = _ALGORITHMS.get((lhs, accumulation), ())
        known = lhs == rhs and algorithm.num_primitive_operations in counts
        known = known and not algorithm.allow_imprecise_accumulation
    components = algorithm.lhs_component_count, algorithm.rhs_component_count
    if not known or components != (1, 1):
        op.fail(f"no hardware is known for the dot algorithm, got: {algorithm}")
    for word in precision.data if precision is not None else ():
        if isinstance(word, PrecisionAttr) and word.data != "DEFAULT":
            op.fail(f"precision must be DEFAULT beside an algorithm, got: {word.data}")


def dot_shape(lhs: Sequence[int], rhs: Sequence[int], numbers: DotAttr) -> tuple[int, ...]:
    """The shape of a `dot_general` of operands of these shapes."""
    taken_left = {*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions}
    taken_right = {*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions}
    return (
        *(lhs[dim] for dim in numbers.lhs_batching_dimensions),
        *(size for dim, size in enumerate(lhs) if dim not in taken_left),
        *(size for dim, size in enumerate(rhs) if dim not in taken_right),
    )


@hlo_op
class DotOp(HloOp):
    """The product of two matrices or vectors (older than `dot_general`).

    `%r = stablehlo.dot %a, %b : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>`
    """

    name = "stablehlo.dot"
    lhs = operand_def(Tensor)
    rhs = operand_def(Tensor)
    precision_config = opt_prop_def(Array)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_precision(self, self.precision_config)
        lhs, rhs = shape_of(self.lhs), shape_of(self.rhs)
        if not (1 <= len(lhs) <= 2 and 1 <= len(rhs) <= 2):
            types = types_text([self.lhs.type, self.rhs.type])
            self.fail(f"operands must be vectors or matrices, got: {types}")
        if not same_size(lhs[-1], rhs[0]):
            self.fail(f"contracting dimensions must have one size, got: {lhs[-1]}, {rhs[0]}")
        check_shape(self, self.result, (*lhs[:-1], *rhs[1:]))


@hlo_op
class EinsumOp(HloOp):
    """A product written as an einsum.

    `%r = stablehlo.einsum %a, %b, config = "ab,bc->ac" : …`
    """

    name = "stablehlo.einsum"
    lhs = operand_def(Tensor)
    rhs = operand_def(Tensor)
    einsum_config = prop_def(Text)
    result = result_def(Tensor)
    traits = traits_def(Pure())


@hlo_op
class UnaryEinsumOp(HloOp):
    """An einsum of one operand.

    `%r = stablehlo.unary_einsum %a, config = "ab->a" : (tensor<4x8xf32>) -> tensor<4xf32>`
    """

    name = "stablehlo.unary_einsum"
    operand = operand_def(Tensor)
    einsum_config = prop_def(Text)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        if "," in self.einsum_config.data:
            self.fail(f"einsum_config must have one operand, got: {self.einsum_config.data}")


@hlo_op
class ConvolutionOp(HloOp):
    """Slides a kernel over the spatial dimensions, multiplying and summing.

    `%r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], …`
    """

    name = "stablehlo.convolution"
    lhs = operand_def(Tensor)
    rhs = operand_def(Tensor)
    window_strides = opt_prop_def(Integers)
    padding = opt_prop_def()
    lhs_dilation = opt_prop_def(Integers)
    rhs_dilation = opt_prop_def(Integers)
    window_reversal = opt_prop_def(Flags)
    dimension_numbers = prop_def(ConvAttr)
    feature_group_count = prop_def(Int)
    batch_group_count = prop_def(Int)
    precision_config = opt_prop_def(Array)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_convolution(self, padding_pairs(self, self.padding, len(shape_of(self.lhs)) - 2))


@hlo_op
class DynamicConvOp(HloOp):
    """A `convolution` whose padding is computed.

    `%r = "stablehlo.dynamic_conv"(%x, %k, %padding) <{…}> : …`
    """

    name = "stablehlo.dynamic_conv"
    lhs = operand_def(Tensor)
    rhs = operand_def(Tensor)
    padding = operand_def(Tensor)
    window_strides = opt_prop_def(Integers)
    lhs_dilation = opt_prop_def(Integers)
    rhs_dilation = opt_prop_def(Integers)
    window_reversal = opt_prop_def(Flags)
    dimension_numbers = prop_def(ConvAttr)
    feature_group_count = prop_def(Int)
    batch_group_count = prop_def(Int)
    precision_config = opt_prop_def(Array)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        spatial = len(shape_of(self.lhs)) - 2
        if len(shape_of(self.padding)) != 2:
            self.fail(f"padding must have two dimensions, got: {self.padding.type}")
        check_shape(self, self.padding, (spatial, 2), "padding")
        check_convolution(self, None)


def check_convolution(
    op: ConvolutionOp | DynamicConvOp, padding: tuple[tuple[int, int], ...] | None
) -> None:
    """Fails unless window, dimension numbers, groups and the result fit the operands.

    Without `padding` (it is computed) the spatial sizes of the result are not checked.
    """
    lhs, kernel, numbers = shape_of(op.lhs), shape_of(op.rhs), op.dimension_numbers
    rank = len(lhs)
    if rank < 2 or len(kernel) != rank:
        op.fail(f"operands must have one rank, got: {types_text([op.lhs.type, op.rhs.type])}")
    check_conv_numbers(op, numbers.data, rank)
    check_precision(op, op.precision_config)
    elements = element_of(op.lhs), element_of(op.rhs)
    if elements[0] != elements[1] and "quant" not in map(kind_of, elements):
        op.fail(f"operands must have elements of one type, got: {elements[0]}, {elements[1]}")
    window = window_of(
        op,
        [kernel[dim] for dim in numbers.kernel_spatial_dimensions],
        op.window_strides,
        padding or ((0, 0),) * (rank - 2),
        op.lhs_dilation,
        op.rhs_dilation,
        op.window_reversal,
        known=False,
    )
    check_groups(op, lhs, kernel)
    places = window.positions([lhs[dim] for dim in numbers.input_spatial_dimensions])
    wanted = [DYNAMIC] * rank
    batch = lhs[numbers.input_batch_dimension]
    wanted[numbers.output_batch_dimension] = divided(batch, int_of(op.batch_group_count))
    features = kernel[numbers.kernel_output_feature_dimension]
    wanted[numbers.output_feature_dimension] = features
    if padding is not None:
        for dim, size in zip(numbers.output_spatial_dimensions, places, strict=True):
            wanted[dim] = size
    check_shape(op, op.result, wanted)


def divided(size: int, parts: int) -> int:
    """A size cut in parts; unknown if it is."""
    return DYNAMIC if size == DYNAMIC else size // parts


def check_conv_numbers(op: HloOp, numbers: ConvNumbers, rank: int) -> None:
    """Fails unless each of input, kernel and output names every dimension once."""
    for first, second, spatial in (numbers[0:3], numbers[3:6], numbers[6:9]):
        dims = (first, second, *spatial)
        check_length(op, "dimension_numbers", dims, rank)
        check_dims(op, "dimension_numbers", dims, rank)


def check_groups(
    op: ConvolutionOp | DynamicConvOp, lhs: Sequence[int], kernel: Sequence[int]
) -> None:
    """Fails unless the groups of features and of the batch divide what they cut."""
    numbers = op.dimension_numbers
    groups, batches = int_of(op.feature_group_count), int_of(op.batch_group_count)
    for name, count in (("feature_group_count", groups), ("batch_group_count", batches)):
        if count < 1:
            op.fail(f"{name} must be at least 1, got: {count}")
    if groups > 1 and batches > 1:
        op.fail(f"feature and batch groups must not both be above 1, got: {groups}, {batches}")
    features, depth = (
        lhs[numbers.input_feature_dimension],
        kernel[numbers.kernel_input_feature_dimension],
    )
    if features != DYNAMIC and (features % groups or not same_size(features // groups, depth)):
        op.fail(
            f"{features} input features in {groups} groups need that kernel depth, got: {depth}"
        )
    batch = lhs[numbers.input_batch_dimension]
    if batch != DYNAMIC and batch % batches:
        op.fail(f"batch must be divisible by batch_group_count {batches}, got: {batch}")
    out = kernel[numbers.kernel_output_feature_dimension]
    for count in (groups, batches):
        if out != DYNAMIC and out % count:
            op.fail(f"output features must be divisible by {count}, got: {out}")


@hlo_op
class FftOp(HloOp):
    """A Fourier transform over the last `len(fft_length)` dimensions.

    `%r = stablehlo.fft %x, type = FFT, length = [16] : …`
    """

    name = "stablehlo.fft"
    operand = operand_def(Tensor)
    fft_type = prop_def(FftTypeAttr)
    fft_length = prop_def(Integers)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        kind, length = self.fft_type.data, self.fft_length.get_values()
        shape, element = shape_of(self.operand), element_of(self.operand)
        if not 1 <= len(length) <= 3:
            self.fail(f"fft_length must have 1 to 3 values, got: {len(length)}")
        if min(length) < 0:
            self.fail(f"fft_length must not be negative, got: {list(length)}")
        if len(shape) < len(length):
            self.fail(
                f"operand must have at least {len(length)} dimensions, got: {self.operand.type}"
            )
        if (kind_of(element) == "float") != (kind == "RFFT"):
            self.fail(f"{kind} takes {'real' if kind == 'RFFT' else 'complex'}, got: {element}")
        if isinstance(element, ComplexType):
            element = cast(ComplexType[AnyFloat], element).element_type
        if not isinstance(element, (Float32Type, Float64Type)):
            self.fail(f"elements must be of f32 or f64, got: {self.operand.type}")
        half = (*length[:-1], length[-1] // 2 + 1 if length[-1] else 0)
        wanted = half if kind == "IRFFT" else length
        if not same_shape(shape[len(shape) - len(length) :], wanted):
            self.fail(f"{kind} needs last dimensions {list(wanted)}, got: {self.operand.type}")
        sizes = half if kind == "RFFT" else length
        result = element if kind == "IRFFT" else ComplexType(element)
        check_result(self, self.result, (*shape[: len(shape) - len(length)], *sizes), result)


@hlo_op
class CholeskyOp(HloOp):
    """The triangular factor of positive definite matrices (the last two dimensions).

    `%r = stablehlo.cholesky %a, lower = true : tensor<2x3x3xf32>`
    """

    name = "stablehlo.cholesky"
    a = operand_def(Tensor)
    lower = opt_prop_def(Flag)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_square(self, self.a)
        check_same_types(self)


@hlo_op
class TriangularSolveOp(HloOp):
    """Solves op(a) · x = b (or x · op(a) = b) with triangular matrices.

    `%x = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, …}> : …`
    """

    name = "stablehlo.triangular_solve"
    a = operand_def(Tensor)
    b = operand_def(Tensor)
    left_side = prop_def(Flag)
    lower = prop_def(Flag)
    unit_diagonal = prop_def(Flag)
    transpose_a = prop_def(TransposeAttr)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_square(self, self.a)
        a, b = shape_of(self.a), shape_of(self.b)
        if len(a) != len(b) or element_of(self.a) != element_of(self.b):
            self.fail(f"operands must be alike, got: {types_text([self.a.type, self.b.type])}")
        left = bool(int_of(self.left_side))
        if not same_size(a[-1], b[-2 if left else -1]) or not same_shape(a[:-2], b[:-2]):
            self.fail(f"b must fit {self.a.type}, got: {self.b.type}")
        if self.transpose_a.data == "TRANSPOSE_INVALID":
            self.fail(f"transpose_a must be a transposition, got: {self.transpose_a.data}")
        check_result(self, self.result, b, element_of(self.b))


def check_square(op: HloOp, value: SSAValue) -> None:
    """Fails unless the last two dimensions are square, of real or complex numbers."""
    check_kind(op, value, REALS | QUANT)
    shape = shape_of(value)
    if len(shape) < 2 or not same_size(shape[-1], shape[-2]):
        op.fail(f"matrices must be square, got: {value.type}")


def check_batch_norm(
    op: BatchNormOp, large: Sequence[SSAValue], features: Sequence[SSAValue]
) -> None:
    """Fails unless the large values are alike and the others are one number for each feature."""
    first, dim = large[0], int_of(op.feature_index)
    check_kind(op, first, FLOATS | QUANT)
    shape = shape_of(first)
    check_dim(op, "feature_index", dim, len(shape))
    for value in large[1:]:
        if not same_type(value.type, first.type):
            op.fail(f"operands and results must be of type {first.type}, got: {value.type}")
    for value in features:
        check_result(op, value, (shape[dim],), element_of(first), "a value for each feature")


@hlo_op
class BatchNormInferenceOp(HloOp):
    """Normalises with given statistics of each feature.

    `%r = "stablehlo.batch_norm_inference"(%x, %scale, %offset, %mean, %variance) <{…}> : …`
    """

    name = "stablehlo.batch_norm_inference"
    operand = operand_def(Tensor)
    scale = operand_def(Tensor)
    offset = operand_def(Tensor)
    mean = operand_def(Tensor)
    variance = operand_def(Tensor)
    epsilon = prop_def(Float32)
    feature_index = prop_def(Int)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        features = (self.scale, self.offset, self.mean, self.variance)
        check_batch_norm(self, (self.operand, self.result), features)


@hlo_op
class BatchNormTrainingOp(HloOp):
    """Normalises with the statistics of the batch, and gives them.

    `%r, %mean, %var = "stablehlo.batch_norm_training"(%x, %scale, %offset) <{…}> : …`
    """

    name = "stablehlo.batch_norm_training"
    operand = operand_def(Tensor)
    scale = operand_def(Tensor)
    offset = operand_def(Tensor)
    epsilon = prop_def(Float32)
    feature_index = prop_def(Int)
    output = result_def(Tensor)
    batch_mean = result_def(Tensor)
    batch_var = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        features = (self.scale, self.offset, self.batch_mean, self.batch_var)
        check_batch_norm(self, (self.operand, self.output), features)


@hlo_op
class BatchNormGradOp(HloOp):
    """The gradient of `batch_norm_training`.

    `%dx, %ds, %do = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy) <{…}> : …`
    """

    name = "stablehlo.batch_norm_grad"
    operand = operand_def(Tensor)
    scale = operand_def(Tensor)
    mean = operand_def(Tensor)
    variance = operand_def(Tensor)
    grad_output = operand_def(Tensor)
    epsilon = prop_def(Float32)
    feature_index = prop_def(Int)
    grad_operand = result_def(Tensor)
    grad_scale = result_def(Tensor)
    grad_offset = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        features = (self.scale, self.mean, self.variance, self.grad_scale, self.grad_offset)
        check_batch_norm(self, (self.operand, self.grad_output, self.grad_operand), features)


BatchNormOp = BatchNormInferenceOp | BatchNormTrainingOp | BatchNormGradOp

CONTRACTION_OPS: list[type[HloOp]] = [
    DotGeneralOp, DotOp, EinsumOp, UnaryEinsumOp, ConvolutionOp, DynamicConvOp, FftOp, CholeskyOp,
    TriangularSolveOp, BatchNormInferenceOp, BatchNormTrainingOp, BatchNormGradOp,
]  # fmt: skip
