"""Which StableHLO ops multiply and sum? Dots, convolutions, transforms, solvers, batch norms."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from .stablehlo_attrs import (
    ConvAttr,
    DotAlgorithmAttr,
    DotAttr,
    FftTypeAttr,
    PrecisionAttr,
    TransposeAttr,
)
from .stablehlo_base import (
    Array,
    HloOp,
    Int,
    Integers,
    Tensor,
    Text,
    Value,
    hlo_op,
    tensor_of,
    with_element,
    with_shape,
)


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
    window_reversal = opt_prop_def(Integers)
    dimension_numbers = prop_def(ConvAttr)
    feature_group_count = prop_def(Int)
    batch_group_count = prop_def(Int)
    precision_config = opt_prop_def(Array)
    result = result_def(Tensor)
    traits = traits_def(Pure())


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
    window_reversal = opt_prop_def(Integers)
    dimension_numbers = prop_def(ConvAttr)
    feature_group_count = prop_def(Int)
    batch_group_count = prop_def(Int)
    precision_config = opt_prop_def(Array)
    result = result_def(Tensor)
    traits = traits_def(Pure())


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


@hlo_op
class CholeskyOp(HloOp):
    """The triangular factor of positive definite matrices (the last two dimensions).

    `%r = stablehlo.cholesky %a, lower = true : tensor<2x3x3xf32>`
    """

    name = "stablehlo.cholesky"
    a = operand_def(Tensor)
    lower = opt_prop_def(Int)
    result = result_def(Tensor)
    traits = traits_def(Pure())


@hlo_op
class TriangularSolveOp(HloOp):
    """Solves op(a) · x = b (or x · op(a) = b) with triangular matrices.

    `%x = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, …}> : …`
    """

    name = "stablehlo.triangular_solve"
    a = operand_def(Tensor)
    b = operand_def(Tensor)
    left_side = prop_def(Int)
    lower = prop_def(Int)
    unit_diagonal = prop_def(Int)
    transpose_a = prop_def(TransposeAttr)
    result = result_def(Tensor)
    traits = traits_def(Pure())


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
    epsilon = prop_def()
    feature_index = prop_def(Int)
    result = result_def(Tensor)
    traits = traits_def(Pure())


@hlo_op
class BatchNormTrainingOp(HloOp):
    """Normalises with the statistics of the batch, and gives them.

    `%r, %mean, %var = "stablehlo.batch_norm_training"(%x, %scale, %offset) <{…}> : …`
    """

    name = "stablehlo.batch_norm_training"
    operand = operand_def(Tensor)
    scale = operand_def(Tensor)
    offset = operand_def(Tensor)
    epsilon = prop_def()
    feature_index = prop_def(Int)
    output = result_def(Tensor)
    batch_mean = result_def(Tensor)
    batch_var = result_def(Tensor)
    traits = traits_def(Pure())


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
    epsilon = prop_def()
    feature_index = prop_def(Int)
    grad_operand = result_def(Tensor)
    grad_scale = result_def(Tensor)
    grad_offset = result_def(Tensor)
    traits = traits_def(Pure())


CONTRACTION_OPS: list[type[HloOp]] = [
    DotGeneralOp, DotOp, EinsumOp, UnaryEinsumOp, ConvolutionOp, DynamicConvOp, FftOp, CholeskyOp,
    TriangularSolveOp, BatchNormInferenceOp, BatchNormTrainingOp, BatchNormGradOp,
]  # fmt: skip
