"""Which CHLO ops are there? Those that JAX and others use beside StableHLO: they decompose into it.

The dialect has functions of one and two operands, binary ops that broadcast as NumPy does, and
a few of their own: `top_k`, `ragged_dot`, `scan`.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType, i1, i32
from xdsl.ir import Attribute, Dialect, SSAValue, TypedAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    irdl_attr_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure, RecursiveMemoryEffect

from .stablehlo_attrs import DotAttr
from .stablehlo_base import (
    DYNAMIC,
    Array,
    Flag,
    HloOp,
    Int,
    Integers,
    Shaped,
    Tensor,
    Value,
    element_of,
    hlo_op,
    int64,
    int_of,
    integers,
    is_tensor,
    same_shape,
    same_types,
    shape_of,
    tensor_of,
    types_text,
    with_element,
    with_shape,
)
from .stablehlo_checks import check_dim, check_dims, check_length, check_region, check_same_shapes
from .stablehlo_contraction import check_dot_numbers
from .stablehlo_elementwise import (
    BITS,
    FLOATS,
    INTS,
    REALS,
    BinaryOp,
    ElementwiseOp,
    Kinds,
    PairOp,
    UnaryOp,
    check_kind,
    family_member,
)
from .stablehlo_structs import Enum, Struct, dims

# --- attributes ----------------------------------------------------------------------------


@irdl_attr_definition
class ComparisonDirectionAttr(Enum):
    """Which comparison a `broadcast_compare` makes."""

    name = "chlo.comparison_direction"
    words = ("EQ", "NE", "GE", "GT", "LE", "LT")


@irdl_attr_definition
class ComparisonTypeAttr(Enum):
    """As what the operands of a `broadcast_compare` are taken."""

    name = "chlo.comparison_type"
    words = ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")


@irdl_attr_definition
class PrecisionAttr(Enum):
    """How exact a `ragged_dot` has to be."""

    name = "chlo.precision"
    words = ("DEFAULT", "HIGH", "HIGHEST")


@irdl_attr_definition
class RaggedDotAttr(Struct):
    """Which dimensions a `ragged_dot` contracts, batches over, and cuts into groups."""

    name = "chlo.ragged_dot"
    lhs_batching_dimensions = dims()
    rhs_batching_dimensions = dims()
    lhs_contracting_dimensions = dims()
    rhs_contracting_dimensions = dims()
    lhs_ragged_dimensions = dims()
    rhs_group_dimensions = dims()


# --- functions of one and two operands -----------------------------------------------------


class _ShapedUnaryOp(UnaryOp, ABC):
    operand = operand_def(Shaped)
    result = result_def(Shaped)


class _ShapedBinaryOp(BinaryOp, ABC):
    lhs = operand_def(Shaped)
    rhs = operand_def(Shaped)
    result = result_def(Shaped)


def _unary(name: str, kinds: Kinds, doc: str) -> type[UnaryOp]:
    return family_member(_ShapedUnaryOp, "chlo", name, kinds, doc)


def _binary(name: str, kinds: Kinds, doc: str) -> type[BinaryOp]:
    return family_member(_ShapedBinaryOp, "chlo", name, kinds, doc)


class _PredicateOp(ElementwiseOp, ABC):
    operand = operand_def(Shaped)
    result = result_def(Shaped)
    traits = traits_def(Pure())

    def __init__(self, operand: Value) -> None:
        super().__init__(operands=[operand], result_types=[with_element(tensor_of(operand), i1)])

    def verify_(self) -> None:
        check_kind(self, self.operand, FLOATS)
        if not isinstance(self.operand.type, TensorType):
            return
        shape = shape_of(self.operand)
        if element_of(self.result) != i1 or not same_shape(shape, shape_of(self.result)):
            self.fail(f"result must be of i1 and the operand's shape, got: {self.result.type}")


def _predicate(name: str, doc: str) -> type[_PredicateOp]:
    return family_member(_PredicateOp, "chlo", name, FLOATS, doc)


AcosOp = _unary("acos", REALS, "The inverse cosine.")
AcoshOp = _unary("acosh", REALS, "The inverse hyperbolic cosine.")
AsinAcosKernelOp = _unary("_asin_acos_kernel", REALS, "What asin and acos of complex share.")
AsinOp = _unary("asin", REALS, "The inverse sine.")
AsinhOp = _unary("asinh", REALS, "The inverse hyperbolic sine.")
AtanOp = _unary("atan", REALS, "The inverse tangent.")
AtanhOp = _unary("atanh", REALS, "The inverse hyperbolic tangent.")
BesselI1eOp = _unary("bessel_i1e", FLOATS, "The scaled modified Bessel function of order 1.")
ConjOp = _unary("conj", REALS, "The complex conjugate.")
CoshOp = _unary("cosh", REALS, "The hyperbolic cosine.")
DigammaOp = _unary("digamma", FLOATS, "The derivative of lgamma.")
ErfOp = _unary("erf", FLOATS, "The error function.")
ErfcOp = _unary("erfc", FLOATS, "1 - erf(x).")
ErfInvOp = _unary("erf_inv", FLOATS, "The inverse of erf.")
LgammaOp = _unary("lgamma", FLOATS, "The logarithm of |Γ(x)|.")
SinhOp = _unary("sinh", REALS, "The hyperbolic sine.")
SquareOp = _unary("square", REALS, "x · x.")
TanOp = _unary("tan", REALS, "The tangent.")

IsInfOp = _predicate("is_inf", "Whether an element is infinite.")
IsNegInfOp = _predicate("is_neg_inf", "Whether an element is minus infinity.")
IsPosInfOp = _predicate("is_pos_inf", "Whether an element is plus infinity.")

MulhiOp = _binary("mulhi", INTS, "The high half of the product.")


@hlo_op
class NextAfterOp(PairOp):
    """The next number after x in the direction of y.

    `%r = chlo.next_after %x, %y : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>`
    """

    name = "chlo.next_after"
    KINDS: ClassVar[Kinds] = FLOATS
    x = operand_def(Shaped)
    y = operand_def(Shaped)
    result = result_def(Shaped)


@hlo_op
class PolygammaOp(PairOp):
    """The n-th derivative of digamma at x.

    `%r = chlo.polygamma %n, %x : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>`
    """

    name = "chlo.polygamma"
    KINDS: ClassVar[Kinds] = FLOATS
    n = operand_def(Shaped)
    x = operand_def(Shaped)
    result = result_def(Shaped)


@hlo_op
class ZetaOp(PairOp):
    """The Hurwitz zeta function: the sum over k of (q + k) to the -x.

    `%r = chlo.zeta %x, %q : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>`
    """

    name = "chlo.zeta"
    KINDS: ClassVar[Kinds] = FLOATS
    x = operand_def(Shaped)
    q = operand_def(Shaped)
    result = result_def(Shaped)


# --- ops that broadcast --------------------------------------------------------------------


def broadcast_shape(lhs: Sequence[int], rhs: Sequence[int]) -> tuple[int, ...]:
    """The shape of two that broadcast as in NumPy; -1 where they do not or it is not known."""
    rank = max(len(lhs), len(rhs))
    pairs = zip(
        (1,) * (rank - len(lhs)) + tuple(lhs), (1,) * (rank - len(rhs)) + tuple(rhs), strict=True
    )
    return tuple(b if a == 1 else a if b in (1, a) else DYNAMIC for a, b in pairs)


def check_broadcast(
    op: HloOp, operands: Sequence[SSAValue], dims: object | None, result: SSAValue
) -> None:
    """Fails unless the result has the shape of the operands broadcast together.

    Along explicit dimensions only its rank is checked.
    """
    if not all(is_tensor(value.type) for value in (*operands, result)):
        return
    shape: tuple[int, ...] = ()
    for value in operands:
        shape = broadcast_shape(shape, shape_of(value))
    if dims is not None:
        shape = (DYNAMIC,) * len(shape)
    if not same_shape(shape_of(result), shape):
        op.fail(f"result must have shape {list(shape)}, got: {result.type}")


class BroadcastBinaryOp(ElementwiseOp, ABC):
    """A binary op whose operands are broadcast first, as in NumPy or along given dimensions."""

    lhs = operand_def(Shaped)
    rhs = operand_def(Shaped)
    broadcast_dimensions = opt_prop_def(Integers)
    result = result_def(Shaped)
    traits = traits_def(Pure())

    def __init__(
        self,
        lhs: Value,
        rhs: Value,
        result_type: Attribute,
        broadcast_dimensions: Sequence[int] | None = None,
    ) -> None:
        dims_attr = None if broadcast_dimensions is None else integers(broadcast_dimensions)
        super().__init__(
            operands=[lhs, rhs],
            result_types=[result_type],
            properties={"broadcast_dimensions": dims_attr},
        )

    def verify_(self) -> None:
        check_kind(self, self.lhs, self.KINDS)
        given = self.broadcast_dimensions
        check_broadcast(self, (self.lhs, self.rhs), given, self.result)
        elements = {element_of(value) for value in (self.lhs, self.rhs, self.result)}
        if self.name == "chlo.broadcast_complex":
            elements.discard(element_of(self.result))
            check_kind(self, self.result, REALS - FLOATS)
        if len(elements) > 1:
            self.fail(f"operands and result must have one element type, got: {self.result.type}")


_BROADCAST: dict[str, tuple[Kinds, str]] = {
    "add": (BITS | REALS, "x + y."),
    "and": (BITS, "Bitwise and."),
    "atan2": (REALS, "The angle of the point (y, x)."),
    "complex": (FLOATS, "Complex numbers of real and imaginary parts."),
    "divide": (BITS | REALS, "x / y."),
    "maximum": (BITS | REALS, "The larger."),
    "minimum": (BITS | REALS, "The smaller."),
    "multiply": (BITS | REALS, "x · y."),
    "next_after": (FLOATS, "The next number after x towards y."),
    "or": (BITS, "Bitwise or."),
    "polygamma": (REALS, "The n-th derivative of digamma."),
    "power": (BITS | REALS, "x to the y."),
    "remainder": (BITS | REALS, "What is left of x / y."),
    "shift_left": (BITS | REALS, "x moved left by y bits."),
    "shift_right_arithmetic": (BITS | REALS, "Moved right; the sign fills."),
    "shift_right_logical": (BITS | REALS, "Moved right; zeros fill."),
    "subtract": (BITS | REALS, "x - y."),
    "xor": (BITS, "Bitwise exclusive or."),
    "zeta": (REALS, "The Hurwitz zeta function."),
}

BROADCAST_OPS: dict[str, type[BroadcastBinaryOp]] = {
    name: family_member(
        BroadcastBinaryOp, "chlo", f"broadcast_{name}", kinds, f"Broadcasting: {doc}"
    )
    for name, (kinds, doc) in _BROADCAST.items()
}
"""The broadcasting ops by the name of what they do after broadcasting."""


@hlo_op
class BroadcastCompareOp(HloOp):
    """Compares after broadcasting.

    `%r = chlo.broadcast_compare %a, %b {comparison_direction = …} : …`
    """

    name = "chlo.broadcast_compare"
    lhs = operand_def(Shaped)
    rhs = operand_def(Shaped)
    broadcast_dimensions = opt_prop_def(Integers)
    comparison_direction = prop_def(ComparisonDirectionAttr)
    compare_type = opt_prop_def(ComparisonTypeAttr)
    result = result_def(Shaped)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_broadcast(self, (self.lhs, self.rhs), self.broadcast_dimensions, self.result)
        if element_of(self.lhs) != element_of(self.rhs):
            self.fail(f"operands must have one element type, got: {self.rhs.type}")
        if element_of(self.result) != i1:
            self.fail(f"result must be of i1, got: {self.result.type}")


@hlo_op
class BroadcastSelectOp(HloOp):
    """Selects after broadcasting.

    `%r = chlo.broadcast_select %p, %a, %b : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> …`
    """

    name = "chlo.broadcast_select"
    pred = operand_def(Shaped)
    on_true = operand_def(Shaped)
    on_false = operand_def(Shaped)
    result = result_def(Shaped)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_broadcast(self, self.operands, None, self.result)
        if element_of(self.pred) != i1:
            self.fail(f"predicate must be of i1, got: {self.pred.type}")
        if element_of(self.on_true) != element_of(self.on_false):
            self.fail(f"branches must have one element type, got: {self.on_false.type}")


# --- others --------------------------------------------------------------------------------


@hlo_op
class ConstantOp(HloOp):
    """A tensor that is known.

    `%c = chlo.constant dense<0.0> : tensor<4xf32>`
    """

    name = "chlo.constant"
    value = prop_def()
    output = result_def(Shaped)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        type_ = self.value.get_type() if isinstance(self.value, TypedAttribute) else None
        if type_ is not None and type_ != self.output.type:
            self.fail(f"result must be of type {type_}, got: {self.output.type}")


@hlo_op
class ConstantLikeOp(HloOp):
    """A splat of a number in the shape of the operand.

    `%c = "chlo.constant_like"(%x) <{value = 1.0 : f32}> : (tensor<?xf32>) -> tensor<?xf32>`
    """

    name = "chlo.constant_like"
    operand = operand_def(Shaped)
    value = prop_def()
    result = result_def(Shaped)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        element = self.value.get_type() if isinstance(self.value, TypedAttribute) else None
        if element is not None and element != element_of(self.result):
            self.fail(f"result must have elements of {element}, got: {self.result.type}")
        operand, result = self.operand.type, self.result.type
        if is_tensor(operand) and is_tensor(result):
            check_same_shapes(self, (self.operand, self.result), "operand and result")


@hlo_op
class RaggedDotOp(HloOp):
    """A `dot_general` of groups: each group of rows on the left has its own right side.

    `%r = "chlo.ragged_dot"(%a, %b, %group_sizes) <{ragged_dot_dimension_numbers = …}> : …`
    """

    name = "chlo.ragged_dot"
    lhs = operand_def(Shaped)
    rhs = operand_def(Shaped)
    group_sizes = operand_def(Shaped)
    ragged_dot_dimension_numbers = prop_def(RaggedDotAttr)
    precision_config = opt_prop_def(Array)
    result = result_def(Shaped)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        numbers = self.ragged_dot_dimension_numbers
        check_length(self, "lhs_ragged_dimensions", numbers.lhs_ragged_dimensions, 1)
        if all(is_tensor(value.type) for value in self.operands):
            lhs, rhs = shape_of(self.lhs), shape_of(self.rhs)
            check_dims(self, "lhs_ragged_dimensions", numbers.lhs_ragged_dimensions, len(lhs))
            check_dims(self, "rhs_group_dimensions", numbers.rhs_group_dimensions, len(rhs))
            check_dot_numbers(self, lhs, rhs, DotAttr(numbers.data[:4]))


@hlo_op
class ScanOp(HloOp):
    """Applies a region along a dimension, carrying values from one step to the next.

    `%o, %c = "chlo.scan"(%x, %init) <{dimension = 0 : i64, …}> ({ … }) : …`
    """

    name = "chlo.scan"
    inputs = var_operand_def(Tensor)
    inits = var_operand_def(Tensor)
    dimension = prop_def(Int)
    scan_dim_size = opt_prop_def(Int)
    is_reverse = opt_prop_def(Flag)
    is_associative = opt_prop_def(Flag)
    body = region_def()
    outputs = var_result_def(Tensor)
    carries = var_result_def(Tensor)
    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (
        AttrSizedOperandSegments(as_property=True),
        AttrSizedResultSegments(as_property=True),
    )

    def verify_(self) -> None:
        dim = int_of(self.dimension)
        if not same_types(self.inits.types, self.carries.types):
            text = types_text(self.carries.types)
            self.fail(f"carries must be of the types of the inits, got: {text}")
        sizes = {self._size_along(dim, value) for value in (*self.inputs, *self.outputs)}
        sizes -= {DYNAMIC}
        if len(sizes) > 1:
            self.fail(f"inputs and outputs must be as long along {dim}, got: {sorted(sizes)}")
        takes = [self._slice(dim, value) for value in self.inputs]
        gives = [self._slice(dim, value) for value in self.outputs]
        inits = self.inits.types
        check_region(self, "body", self.body, [*takes, *inits], [*gives, *inits])

    def _size_along(self, dim: int, value: SSAValue) -> int:
        shape = shape_of(value)
        check_dim(self, "dimension", dim, len(shape))
        return shape[dim]

    def _slice(self, dim: int, value: SSAValue) -> Attribute:
        shape = shape_of(value)
        return with_shape(tensor_of(value), (*shape[:dim], *shape[dim + 1 :]))


@hlo_op
class TopKOp(HloOp):
    """The k largest along the last dimension, and where they were.

    `%v, %i = chlo.top_k(%x, k = 4) : tensor<8x16xf32> -> (tensor<8x4xf32>, tensor<8x4xi32>)`
    """

    name = "chlo.top_k"
    operand = operand_def(Shaped)
    k = prop_def(Int)
    values = result_def(Shaped)
    indices = result_def(Shaped)
    traits = traits_def(Pure())

    def __init__(self, operand: Value, k: int) -> None:
        type_ = tensor_of(operand)
        values = with_shape(type_, [*type_.get_shape()[:-1], k])
        super().__init__(
            operands=[operand],
            result_types=[values, with_element(values, i32)],
            properties={"k": int64(k)},
        )

    def verify_(self) -> None:
        if not all(is_tensor(value.type) for value in (self.operand, *self.results)):
            return
        shape, k = shape_of(self.operand), self.k.value.data
        if not shape:
            self.fail(f"operand must have a dimension, got: {self.operand.type}")
        if k < 0 or 0 <= shape[-1] < k:
            self.fail(f"k must be at most the last dimension {shape[-1]}, got: {k}")
        wanted = (*shape[:-1], k)
        for value, element in ((self.values, element_of(self.operand)), (self.indices, i32)):
            if element_of(value) != element or not same_shape(shape_of(value), wanted):
                self.fail(f"result must be of {element} and shape {wanted}, got: {value.type}")


OPS: list[type[HloOp]] = [
    AcosOp, AcoshOp, AsinAcosKernelOp, AsinOp, AsinhOp, AtanOp, AtanhOp, BesselI1eOp, ConjOp,
    CoshOp, DigammaOp, ErfOp, ErfcOp, ErfInvOp, LgammaOp, SinhOp, SquareOp, TanOp, IsInfOp,
    IsNegInfOp, IsPosInfOp, MulhiOp, NextAfterOp, PolygammaOp, ZetaOp, *BROADCAST_OPS.values(),
    BroadcastCompareOp, BroadcastSelectOp, ConstantOp, ConstantLikeOp, RaggedDotOp, ScanOp, TopKOp,
]  # fmt: skip

ATTRIBUTES: list[type[Attribute]] = [
    ComparisonDirectionAttr,
    ComparisonTypeAttr,
    PrecisionAttr,
    RaggedDotAttr,
]

Chlo = Dialect("chlo", list(OPS), ATTRIBUTES)
