"""Which StableHLO ops work on each element alone?

Most are of three shapes (one operand, one operand with an accuracy, two operands), so they are
rows of a table: MLIR's name, the elements that the specification allows, and what it computes.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, TypeVar, cast

from xdsl.dialects.builtin import AnyFloat, ComplexType, Float32Type, Float64Type, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from .stablehlo_attrs import (
    ComparisonDirectionAttr,
    ComparisonTypeAttr,
    ResultAccuracyAttr,
)
from .stablehlo_base import (
    AnyTensor,
    HloOp,
    Int32,
    Tensor,
    Value,
    element_of,
    hlo_op,
    kind_of,
    same_shape,
    same_type,
    shape_of,
    tensor_of,
    types_text,
    with_element,
)
from .stablehlo_checks import bit_width

Kinds = frozenset[str]
INTS: Kinds = frozenset({"int", "uint"})
SIGNED: Kinds = frozenset({"int"})
BITS: Kinds = INTS | {"pred"}
FLOATS: Kinds = frozenset({"float"})
REALS: Kinds = frozenset({"float", "complex"})
QUANT: Kinds = frozenset({"quant"})
ANY: Kinds = BITS | REALS | QUANT


def check_kind(op: HloOp, value: SSAValue, kinds: Kinds) -> None:
    """Fails unless the elements of a value are of one of these kinds."""
    kind = kind_of(element_of(value))
    if kind not in kinds:
        op.fail(f"element type must be one of {', '.join(sorted(kinds))}, got: {value.type}")


class ElementwiseOp(HloOp, ABC):
    """An op whose result has, at each place, a function of the operands at that place.

    `KINDS` are the element kinds it is defined for (see `kind_of`).
    """

    KINDS: ClassVar[Kinds] = ANY


class UnaryOp(ElementwiseOp, ABC):
    """One operand, a result of the same type."""

    operand = operand_def(Tensor)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, operand: Value, result_type: Attribute | None = None) -> None:
        super().__init__(operands=[operand], result_types=[result_type or tensor_of(operand)])

    def verify_(self) -> None:
        check_kind(self, self._operands[0], self.KINDS)
        check_same_types(self)


class AccurateUnaryOp(UnaryOp, ABC):
    """A `UnaryOp` that can be told how exact to be."""

    result_accuracy = opt_prop_def(ResultAccuracyAttr)

    def verify_(self) -> None:
        super().verify_()
        accuracy = self.result_accuracy
        if accuracy is not None:
            check_accuracy(self, accuracy)


class PairOp(ElementwiseOp, ABC):
    """Two operands (which a subclass names), a result of the same type."""

    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, lhs: Value, rhs: Value, result_type: Attribute | None = None) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[result_type or tensor_of(lhs)])

    def verify_(self) -> None:
        check_kind(self, self._operands[0], self.KINDS)
        check_same_types(self)


def check_same_types(op: HloOp) -> None:
    """Fails unless all operands and results can be of one type."""
    operands = op.operands
    first = operands[0].type
    for value in (*operands[1:], *op.results):
        if value.type is not first and not same_type(first, value.type):
            op.fail(f"operands and results must be of one type, got: {first}, {value.type}")


def check_accuracy(op: HloOp, accuracy: ResultAccuracyAttr) -> None:
    """Fails unless a tolerance is given exactly when the mode asks for one."""
    given = bool(accuracy.atol or accuracy.rtol or accuracy.ulps)
    if accuracy.atol < 0 or accuracy.rtol < 0 or accuracy.ulps < 0:
        op.fail(f"a tolerance must not be negative, got: {accuracy}")
    if given != ("TOLERANCE" in str(accuracy.mode)):
        op.fail(f"a tolerance goes with the mode TOLERANCE only, got: {accuracy}")


class BinaryOp(PairOp, ABC):
    """Two operands, a result of the same type."""

    lhs = operand_def(Tensor)
    rhs = operand_def(Tensor)


Base = TypeVar("Base", bound=HloOp)


def family_member(
    base: type[Base], dialect: str, name: str, kinds: Kinds, doc: str, python_name: str = ""
) -> type[Base]:
    """An op class of a family: `base` under MLIR's name, for these kinds of elements."""
    words = "".join(part.capitalize() for part in name.split("_"))
    body = {
        "name": f"{dialect}.{name}",
        "KINDS": kinds,
        "__annotations__": {"KINDS": "ClassVar[Kinds]"},
        "__doc__": f"{doc}\n\n    `%r = {dialect}.{name} …`",
        "__module__": base.__module__,
    }
    return hlo_op(cast(type[Base], type(python_name or f"{words}Op", (base,), body)))


def _unary(name: str, kinds: Kinds, doc: str) -> type[UnaryOp]:
    return family_member(UnaryOp, "stablehlo", name, kinds, doc)


def _accurate(name: str, kinds: Kinds, doc: str) -> type[AccurateUnaryOp]:
    return family_member(AccurateUnaryOp, "stablehlo", name, kinds, doc)


def _binary(name: str, kinds: Kinds, doc: str) -> type[BinaryOp]:
    return family_member(BinaryOp, "stablehlo", name, kinds, doc)


NUMBERS = INTS | REALS | QUANT

CeilOp = _unary("ceil", FLOATS | QUANT, "The next integer above.")
CountLeadingZerosOp = _unary("count_leading_zeros", INTS, "How many of the highest bits are zero.")
FloorOp = _unary("floor", FLOATS | QUANT, "The next integer below.")
NegateOp = _unary("negate", NUMBERS, "-x.")
NotOp = _unary("not", BITS, "Every bit turned.")
PopcntOp = _unary("popcnt", INTS, "How many bits are set.")
RoundNearestAfzOp = _unary("round_nearest_afz", FLOATS | QUANT, "Nearest; halves go away from 0.")
RoundNearestEvenOp = _unary("round_nearest_even", FLOATS | QUANT, "Nearest; halves go to even.")
SignOp = _unary("sign", SIGNED | REALS | QUANT, "-1, 0 or 1; x/|x| for complex numbers.")

CbrtOp = _accurate("cbrt", REALS | QUANT, "The cubic root.")
CosineOp = _accurate("cosine", REALS | QUANT, "cos x.")
ExponentialOp = _accurate("exponential", REALS | QUANT, "e to the x.")
ExponentialMinusOneOp = _accurate("exponential_minus_one", REALS | QUANT, "e to the x, less 1.")
LogOp = _accurate("log", REALS | QUANT, "The natural logarithm.")
LogPlusOneOp = _accurate("log_plus_one", REALS | QUANT, "log(1 + x).")
LogisticOp = _accurate("logistic", REALS | QUANT, "1 / (1 + e to the -x).")
RsqrtOp = _accurate("rsqrt", REALS | QUANT, "1 / √x.")
SineOp = _accurate("sine", REALS | QUANT, "sin x.")
SqrtOp = _accurate("sqrt", REALS | QUANT, "√x.")
TanOp = _accurate("tan", REALS | QUANT, "tan x.")
TanhOp = _accurate("tanh", REALS | QUANT, "tanh x.")

AddOp = _binary("add", ANY, "x + y; or for booleans.")
AndOp = _binary("and", BITS, "Bitwise and.")
Atan2Op = _binary("atan2", REALS | QUANT, "The angle of the point (y, x).")
DivideOp = _binary("divide", NUMBERS, "x / y; integers round towards 0.")
MaximumOp = _binary("maximum", ANY, "The larger; NaN if either is.")
MinimumOp = _binary("minimum", ANY, "The smaller; NaN if either is.")
MultiplyOp = _binary("multiply", ANY, "x · y; and for booleans.")
OrOp = _binary("or", BITS, "Bitwise or.")
PowerOp = _binary("power", NUMBERS, "x to the y.")
RemainderOp = _binary("remainder", NUMBERS, "What is left of x / y; it has the sign of x.")
ShiftLeftOp = _binary("shift_left", INTS, "x moved left by y bits.")
ShiftRightArithmeticOp = _binary("shift_right_arithmetic", INTS, "Moved right; the sign fills.")
ShiftRightLogicalOp = _binary("shift_right_logical", INTS, "Moved right; zeros fill.")
SubtractOp = _binary("subtract", NUMBERS, "x - y.")
XorOp = _binary("xor", BITS, "Bitwise exclusive or.")


@hlo_op
class AbsOp(UnaryOp):
    """The absolute value; of complex numbers the (real) modulus.

    `%r = stablehlo.abs %x : tensor<2xf32>`
    """

    name = "stablehlo.abs"

    def __init__(self, operand: Value, result_type: Attribute | None = None) -> None:
        super().__init__(operand, result_type or _real_of(tensor_of(operand)))

    def verify_(self) -> None:
        check_kind(self, self.operand, SIGNED | REALS | QUANT)
        wanted = _real_of(tensor_of(self.operand))
        if not same_type(wanted, self.result.type):
            self.fail(f"result must be of type {wanted}, got: {self.result.type}")


def _real_of(type_: AnyTensor) -> AnyTensor:
    element = type_.element_type
    if not isinstance(element, ComplexType):
        return type_
    return with_element(type_, cast(ComplexType[AnyFloat], element).element_type)


class _ComplexPartOp(ElementwiseOp, ABC):
    operand = operand_def(Tensor)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, operand: Value) -> None:
        super().__init__(operands=[operand], result_types=[_real_of(tensor_of(operand))])

    def verify_(self) -> None:
        check_kind(self, self.operand, REALS)
        wanted = _real_of(tensor_of(self.operand))
        if not same_type(wanted, self.result.type):
            self.fail(f"result must be of type {wanted}, got: {self.result.type}")


RealOp = family_member(_ComplexPartOp, "stablehlo", "real", REALS, "The real part.")
ImagOp = family_member(_ComplexPartOp, "stablehlo", "imag", REALS, "The imaginary part.")


@hlo_op
class ComplexOp(HloOp):
    """Complex numbers of real and imaginary parts.

    `%r = stablehlo.complex %re, %im : tensor<2xcomplex<f32>>`
    """

    name = "stablehlo.complex"
    lhs = operand_def(Tensor)
    rhs = operand_def(Tensor)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, lhs: Value, rhs: Value) -> None:
        type_ = tensor_of(lhs)
        element = cast(Float32Type | Float64Type, type_.element_type)
        result = with_element(type_, ComplexType(element))
        super().__init__(operands=[lhs, rhs], result_types=[result])

    def verify_(self) -> None:
        element = element_of(self.lhs)
        if not isinstance(element, (Float32Type, Float64Type)):
            self.fail(f"parts must be f32 or f64, got: {self.lhs.type}")
        if not same_type(self.lhs.type, self.rhs.type):
            self.fail(f"parts must be of one type, got: {self.lhs.type}, {self.rhs.type}")
        wanted = with_element(tensor_of(self.lhs), ComplexType(element))
        if not same_type(wanted, self.result.type):
            self.fail(f"result must be of type {wanted}, got: {self.result.type}")


@hlo_op
class IsFiniteOp(HloOp):
    """Whether an element is neither infinite nor NaN.

    `%y = stablehlo.is_finite %x : (tensor<2xf32>) -> tensor<2xi1>`
    """

    name = "stablehlo.is_finite"
    x = operand_def(Tensor)
    y = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, x: Value) -> None:
        super().__init__(operands=[x], result_types=[with_element(tensor_of(x), i1)])

    def verify_(self) -> None:
        check_kind(self, self.x, FLOATS | QUANT)
        if element_of(self.y) != i1 or not same_shape(shape_of(self.x), shape_of(self.y)):
            self.fail(f"result must be of i1 and the operand's shape, got: {self.y.type}")


@hlo_op
class CompareOp(HloOp):
    """Compares elements, `EQ NE GE GT LE LT`; the type says as what, if that is not obvious.

    `%r = stablehlo.compare LT, %a, %b, FLOAT : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>`
    """

    name = "stablehlo.compare"
    lhs = operand_def(Tensor)
    rhs = operand_def(Tensor)
    comparison_direction = prop_def(ComparisonDirectionAttr)
    compare_type = opt_prop_def(ComparisonTypeAttr)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, lhs: Value, rhs: Value, direction: str, compare_type: str = "") -> None:
        super().__init__(
            operands=[lhs, rhs],
            result_types=[with_element(tensor_of(lhs), i1)],
            properties={
                "comparison_direction": ComparisonDirectionAttr(direction),
                "compare_type": ComparisonTypeAttr(compare_type) if compare_type else None,
            },
        )

    def verify_(self) -> None:
        if not same_type(self.lhs.type, self.rhs.type):
            self.fail(f"operands must be of one type, got: {self.lhs.type}, {self.rhs.type}")
        if element_of(self.result) != i1 or not same_shape(
            shape_of(self.lhs), shape_of(self.result)
        ):
            self.fail(f"result must be of i1 and the operands' shape, got: {self.result.type}")


@hlo_op
class SelectOp(HloOp):
    """Takes elements of the one or of the other; the predicate may be one for all.

    `%r = stablehlo.select %p, %a, %b : tensor<2xi1>, tensor<2xf32>`
    """

    name = "stablehlo.select"
    pred = operand_def(Tensor)
    on_true = operand_def(Tensor)
    on_false = operand_def(Tensor)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, pred: Value, on_true: Value, on_false: Value) -> None:
        super().__init__(operands=[pred, on_true, on_false], result_types=[tensor_of(on_true)])

    def verify_(self) -> None:
        pred, on_true, on_false = self._operands
        if element_of(pred) != i1:
            self.fail(f"predicate must be of i1, got: {pred.type}")
        if not same_type(on_true.type, on_false.type):
            self.fail(f"branches must be of one type, got: {on_true.type}, {on_false.type}")
        if not same_type(on_true.type, self.result.type):
            self.fail(f"result must be of type {on_true.type}, got: {self.result.type}")
        if shape_of(pred) and not same_shape(shape_of(pred), shape_of(on_true)):
            self.fail(f"predicate must be a scalar or of the branches' shape, got: {pred.type}")


@hlo_op
class ClampOp(HloOp):
    """Keeps elements between two bounds; a bound may be one for all.

    `%r = stablehlo.clamp %low, %x, %high : tensor<2xf32>`
    """

    name = "stablehlo.clamp"
    min = operand_def(Tensor)
    operand = operand_def(Tensor)
    max = operand_def(Tensor)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, min: Value, operand: Value, max: Value) -> None:
        super().__init__(operands=[min, operand, max], result_types=[tensor_of(operand)])

    def verify_(self) -> None:
        shape, element = shape_of(self.operand), element_of(self.operand)
        for bound in (self.min, self.max):
            if element_of(bound) != element:
                self.fail(f"bounds must have elements of {element}, got: {bound.type}")
            if shape_of(bound) and not same_shape(shape_of(bound), shape):
                self.fail(f"a bound must be a scalar or of the operand's shape, got: {bound.type}")
        if not same_type(self.operand.type, self.result.type):
            self.fail(f"result must be of type {self.operand.type}, got: {self.result.type}")


@hlo_op
class ConvertOp(HloOp):
    """The same numbers with elements of another type.

    `%r = stablehlo.convert %x : (tensor<2xf32>) -> tensor<2xi32>`
    """

    name = "stablehlo.convert"
    operand = operand_def(Tensor)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, operand: Value, element_type: Attribute) -> None:
        result = with_element(tensor_of(operand), element_type)
        super().__init__(operands=[operand], result_types=[result])

    def verify_(self) -> None:
        if not same_shape(shape_of(self.operand), shape_of(self.result)):
            types = types_text([self.operand.type, self.result.type])
            self.fail(f"operand and result must have one shape, got: {types}")


@hlo_op
class BitcastConvertOp(HloOp):
    """The same bits as elements of another type; a change of width takes or makes a last dim.

    `%r = stablehlo.bitcast_convert %x : (tensor<2xf32>) -> tensor<2x4xi8>`
    """

    name = "stablehlo.bitcast_convert"
    operand = operand_def(Tensor)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def __init__(self, operand: Value, result_type: Attribute) -> None:
        super().__init__(operands=[operand], result_types=[result_type])

    def verify_(self) -> None:
        old, new = element_of(self.operand), element_of(self.result)
        if (kind_of(old) == "complex") != (kind_of(new) == "complex"):
            self.fail(f"real and complex do not convert bitwise, got: {self.operand.type}, {new}")
        widths = bit_width(old), bit_width(new)
        shapes = shape_of(self.operand), shape_of(self.result)
        if widths[0] > widths[1]:
            widths, shapes = widths[::-1], shapes[::-1]
        narrow, wide = shapes
        if widths[0] == widths[1]:
            fits = same_shape(narrow, wide)
        else:
            parts = widths[1] // widths[0]
            fits = widths[1] % widths[0] == 0 and same_shape(narrow, (*wide, parts))
        if not fits:
            self.fail(f"bits do not fit, {self.operand.type} as: {self.result.type}")


@hlo_op
class ReducePrecisionOp(HloOp):
    """Rounds as if the exponent and the mantissa had only so many bits.

    `%r = stablehlo.reduce_precision %x, format = e5m10 : tensor<2xf32>`
    """

    name = "stablehlo.reduce_precision"
    operand = operand_def(Tensor)
    exponent_bits = prop_def(Int32)
    mantissa_bits = prop_def(Int32)
    output = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_kind(self, self.operand, FLOATS | QUANT)
        check_same_types(self)
        if self.exponent_bits.value.data < 1:
            self.fail(f"exponent_bits must be at least 1, got: {self.exponent_bits.value.data}")
        if self.mantissa_bits.value.data < 0:
            self.fail(f"mantissa_bits must not be negative, got: {self.mantissa_bits.value.data}")


class _QuantizeOp(HloOp, ABC):
    operand = operand_def(Tensor)
    result = result_def(Tensor)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        if not same_shape(shape_of(self.operand), shape_of(self.result)):
            types = types_text([self.operand.type, self.result.type])
            self.fail(f"operand and result must have one shape, got: {types}")


@hlo_op
class UniformQuantizeOp(_QuantizeOp):
    """Floats (or quantised numbers) as quantised numbers.

    `%r = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 0.1>>`
    """

    name = "stablehlo.uniform_quantize"


@hlo_op
class UniformDequantizeOp(_QuantizeOp):
    """Quantised numbers as floats.

    `%r = stablehlo.uniform_dequantize %x : (tensor<2x!quant.uniform<…>>) -> tensor<2xf32>`
    """

    name = "stablehlo.uniform_dequantize"


UNARY: list[type[HloOp]] = [
    AbsOp, CeilOp, CountLeadingZerosOp, FloorOp, NegateOp, NotOp, PopcntOp, RoundNearestAfzOp,
    RoundNearestEvenOp, SignOp, CbrtOp, CosineOp, ExponentialOp, ExponentialMinusOneOp, LogOp,
    LogPlusOneOp, LogisticOp, RsqrtOp, SineOp, SqrtOp, TanOp, TanhOp,
]  # fmt: skip

BINARY: list[type[HloOp]] = [
    AddOp, AndOp, Atan2Op, DivideOp, MaximumOp, MinimumOp, MultiplyOp, OrOp, PowerOp, RemainderOp,
    ShiftLeftOp, ShiftRightArithmeticOp, ShiftRightLogicalOp, SubtractOp, XorOp,
]  # fmt: skip

ELEMENTWISE_OPS: list[type[HloOp]] = [
    *UNARY, *BINARY, RealOp, ImagOp, ComplexOp, IsFiniteOp, CompareOp, SelectOp, ClampOp,
    ConvertOp, BitcastConvertOp, ReducePrecisionOp, UniformQuantizeOp, UniformDequantizeOp,
]  # fmt: skip
