"""What the elementwise ops compute, as tables of NumPy functions.

Every kernel here broadcasts, so that it may be used inside a vectorised region body as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Operation

from . import numbers, special
from .attributes import find, integer, integers, result_shape, text
from .compiler import Context
from .numbers import is_float, wide
from .registry import Array, Kernel, binary, implements_elementwise, ternary, unary

Function = Callable[..., Any]


def _cbrt(a: Array) -> Array:
    return np.power(a, a.dtype.type(1 / 3)) if a.dtype.kind == "c" else np.cbrt(a)


def _exp(a: Array) -> Array:
    """exp(x)·(cos y + i·sin y), also for infinite x; in two factors, so that it overflows late."""
    if a.dtype.kind != "c":
        return np.exp(a)
    half: Array = np.exp(np.real(a) / 2)
    angle: Array = np.asarray(np.imag(a))
    result = np.empty(a.shape, a.dtype)
    result.real = half * np.cos(angle) * half
    result.imag = np.where(angle == 0, angle, half * np.sin(angle) * half)
    return result


def _log1p(a: Array) -> Array:
    if a.dtype.kind != "c":
        return np.log1p(a)
    x, y = np.asarray(np.real(a)), np.asarray(np.imag(a))
    far: Array = np.log(a + a.dtype.type(1))
    near: Array = np.log1p(x * (2 + x) + y * y) / 2  # exact where log |1 + a| is near 0
    result = far.copy()
    result.real = np.where(np.abs(a) < 0.5, near, np.asarray(np.real(far)))
    return result


def _atan2(a: Array, b: Array) -> Array:
    if a.dtype.kind != "c":
        return np.arctan2(a, b)
    return (-1j * np.log((b + 1j * a) / np.sqrt(b * b + a * a))).astype(a.dtype)


def _sign(a: Array) -> Array:
    if a.dtype.kind == "c":
        size = np.abs(a)
        return np.where(size == 0, a, a / np.where(size == 0, 1, size)).astype(a.dtype)
    return np.where(a == 0, a, np.sign(a)).astype(a.dtype)  # keeps -0


def _logistic(a: Array) -> Array:
    if a.dtype.kind == "c":
        return (1 / (1 + np.exp(-a))).astype(a.dtype)
    small = np.exp(-np.abs(a))
    return np.where(a >= 0, 1 / (1 + small), small / (1 + small)).astype(a.dtype)


def _round_away(a: Array) -> Array:
    whole = np.trunc(a)
    return whole + np.where(np.abs(a - whole) >= 0.5, np.copysign(1, a), 0).astype(a.dtype)


def _rsqrt(a: Array) -> Array:
    return np.divide(a.dtype.type(1), np.sqrt(a))


def _negate(a: Array) -> Array:
    return np.negative(a)


def _extreme(function: Function, compare: Function) -> Function:
    """`function`, but complex numbers are compared in lexicographic order."""

    def pick(a: Array, b: Array) -> Array:
        if a.dtype.kind == "c":
            return np.where(_compare_complex(compare, a, b), a, b)
        return function(a, b)

    return pick


UNARY: dict[str, Function] = {
    "stablehlo.abs": np.abs,
    "stablehlo.negate": _negate,
    "stablehlo.sign": _sign,
    "stablehlo.cbrt": _cbrt,
    "stablehlo.ceil": np.ceil,
    "stablehlo.floor": np.floor,
    "stablehlo.round_nearest_even": np.rint,
    "stablehlo.round_nearest_afz": _round_away,
    "stablehlo.cosine": np.cos,
    "stablehlo.sine": np.sin,
    "stablehlo.tan": np.tan,
    "stablehlo.tanh": np.tanh,
    "stablehlo.exponential": _exp,
    "stablehlo.exponential_minus_one": np.expm1,
    "stablehlo.log": np.log,
    "stablehlo.log_plus_one": _log1p,
    "stablehlo.logistic": _logistic,
    "stablehlo.sqrt": np.sqrt,
    "stablehlo.rsqrt": _rsqrt,
    "stablehlo.not": np.invert,
    "chlo.acos": np.arccos,
    "chlo.acosh": np.arccosh,
    "chlo.asin": np.arcsin,
    "chlo.asinh": np.arcsinh,
    "chlo.atan": np.arctan,
    "chlo.atanh": np.arctanh,
    "chlo.cosh": np.cosh,
    "chlo.sinh": np.sinh,
    "chlo.tan": np.tan,
    "chlo.conj": np.conj,
    "chlo.square": np.square,
    "chlo.erf": special.erf,
    "chlo.erfc": special.erfc,
    "chlo.erf_inv": special.erf_inv,
    "chlo.lgamma": special.lgamma,
    "chlo.digamma": special.digamma,
    "chlo.bessel_i1e": special.bessel_i1e,
}

BINARY: dict[str, Function] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": numbers.divide,
    "remainder": numbers.remainder,
    "power": numbers.power,
    "maximum": _extreme(np.maximum, np.greater_equal),
    "minimum": _extreme(np.minimum, np.less_equal),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "atan2": _atan2,
    "shift_left": numbers.shift_left,
    "shift_right_arithmetic": numbers.shift_right_arithmetic,
}

CHLO_BINARY: dict[str, Function] = {
    "zeta": special.zeta,
    "polygamma": special.polygamma,
    "next_after": special.next_after,
}

COMPARE: dict[str, Function] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _register(name: str, function: Function) -> None:
    kernel = numbers.widened(function)

    @implements_elementwise(name)
    def _build(op: Operation, context: Context) -> Kernel:
        del op, context
        return kernel


def _register_broadcasting(name: str, function: Function) -> None:
    kernel = numbers.widened(function)

    @implements_elementwise(name)
    def _build(op: Operation, context: Context) -> Kernel:
        return _spread(op, kernel)


def _spread(op: Operation, kernel: Kernel) -> Kernel:
    """A kernel whose operand of lower rank lies along `broadcast_dimensions` of the other."""
    if find(op, "broadcast_dimensions") is None:
        return kernel
    dims, rank = integers(op, "broadcast_dimensions"), len(result_shape(op))

    def place(a: Array) -> Array:
        if a.ndim == rank or a.ndim != len(dims):
            return a
        side = [1] * rank
        for dimension, size in zip(dims, a.shape, strict=True):
            side[dimension] = size
        return a.reshape(side)

    return binary(lambda a, b: kernel(place(a), place(b)))


for _name, _function in UNARY.items():
    _register(_name, _function)
for _name, _function in BINARY.items():
    _register(f"stablehlo.{_name}", _function)
    _register_broadcasting(f"chlo.broadcast_{_name}", _function)
for _name, _function in CHLO_BINARY.items():
    _register(f"chlo.{_name}", _function)
    _register_broadcasting(f"chlo.broadcast_{_name}", _function)


# ----------------------------------------------------------------------------- bit patterns


def _unsigned(a: Array) -> Array:
    """The bit pattern of an integer in an unsigned type of at least 8 bits."""
    if wide(a.dtype) == a.dtype:
        return a
    return (a.astype(wide(a.dtype)).astype(np.int64) & ((1 << numbers.bits(a.dtype)) - 1)).astype(
        np.uint8
    )


@implements_elementwise("stablehlo.shift_right_logical", "chlo.broadcast_shift_right_logical")
def _shift_right_logical(op: Operation, context: Context) -> Kernel:
    def kernel(a: Array, b: Array) -> Array:
        return numbers.narrow(numbers.shift_right_logical(_unsigned(a), _unsigned(b)), a.dtype)

    return _spread(op, kernel)


@implements_elementwise("stablehlo.popcnt")
def _popcnt(op: Operation, context: Context) -> Kernel:
    return unary(lambda a: numbers.narrow(numbers.popcount(_unsigned(a)), a.dtype))


@implements_elementwise("stablehlo.count_leading_zeros")
def _count_leading_zeros(op: Operation, context: Context) -> Kernel:
    def kernel(a: Array) -> Array:
        pattern = _unsigned(a)
        extra = numbers.bits(pattern.dtype) - numbers.bits(a.dtype)
        return numbers.narrow(
            numbers.count_leading_zeros(pattern) - pattern.dtype.type(extra), a.dtype
        )

    return kernel


@implements_elementwise("chlo.mulhi")
def _mulhi(op: Operation, context: Context) -> Kernel:
    def kernel(a: Array, b: Array) -> Array:
        width = numbers.bits(a.dtype)
        product = a.astype(object) * b.astype(object)
        return (product >> width).astype(a.dtype)

    return kernel


# ----------------------------------------------------------------------------- predicates, choice


@implements_elementwise("stablehlo.is_finite")
def _is_finite(op: Operation, context: Context) -> Kernel:
    return unary(lambda a: np.asarray(np.isfinite(a.astype(wide(a.dtype)))))


def _predicate(name: str, function: Function) -> None:
    @implements_elementwise(name)
    def _build(op: Operation, context: Context) -> Kernel:
        return unary(lambda a: np.asarray(function(a.astype(wide(a.dtype)))))


for _name, _function in {
    "chlo.is_inf": np.isinf,
    "chlo.is_pos_inf": np.isposinf,
    "chlo.is_neg_inf": np.isneginf,
}.items():
    _predicate(_name, _function)


@implements_elementwise("stablehlo.compare", "chlo.broadcast_compare")
def _compare(op: Operation, context: Context) -> Kernel:
    compare = COMPARE[text(op, "comparison_direction")]
    total = text(op, "compare_type", "NOTYPE") == "TOTALORDER"
    equality = compare in (np.equal, np.not_equal)

    def kernel(a: Array, b: Array) -> Array:
        if total and is_float(a.dtype):
            return np.asarray(compare(numbers.total_order_key(a), numbers.total_order_key(b)))
        if a.dtype.kind == "c" and not equality:
            return _compare_complex(compare, a, b)
        target = wide(a.dtype)
        return np.asarray(compare(a.astype(target, copy=False), b.astype(target, copy=False)))

    return kernel


def _compare_complex(compare: Function, a: Array, b: Array) -> Array:
    left, right = np.asarray(np.real(a)), np.asarray(np.real(b))
    low: Array = compare(np.imag(a), np.imag(b))
    high: Array = compare(left, right)
    return np.where(left == right, low, high)


@implements_elementwise("stablehlo.select", "chlo.broadcast_select")
def _select(op: Operation, context: Context) -> Kernel:
    return np.where


@implements_elementwise("stablehlo.clamp")
def _clamp(op: Operation, context: Context) -> Kernel:
    return numbers.widened(ternary(lambda low, a, high: np.minimum(np.maximum(a, low), high)))


@implements_elementwise("stablehlo.optimization_barrier")
def _identity(op: Operation, context: Context) -> Kernel:
    def kernel(*values: Any) -> tuple[Any, ...]:
        return values

    return kernel


# ----------------------------------------------------------------------------- types


@implements_elementwise("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize")
def _quantise(op: Operation, context: Context) -> Kernel:
    return unary(lambda a: a)  # what is stored changes, not what it stands for


@implements_elementwise("stablehlo.convert")
def _convert(op: Operation, context: Context) -> Kernel:
    stored = context.dtype(op.results[0].type)

    def kernel(a: Array) -> Array:
        return numbers.convert(a, stored)

    return kernel


@implements_elementwise("stablehlo.reduce_precision")
def _reduce_precision(op: Operation, context: Context) -> Kernel:
    exponent, mantissa = integer(op, "exponent_bits"), integer(op, "mantissa_bits")
    if context.reference:
        return unary(lambda a: a)
    return unary(lambda a: numbers.reduce_precision(a, exponent, mantissa))


@implements_elementwise("stablehlo.real")
def _real(op: Operation, context: Context) -> Kernel:
    return unary(lambda a: np.ascontiguousarray(np.real(a)))


@implements_elementwise("stablehlo.imag")
def _imag(op: Operation, context: Context) -> Kernel:
    return unary(lambda a: np.ascontiguousarray(np.imag(a)))


@implements_elementwise("stablehlo.complex", "chlo.broadcast_complex")
def _complex(op: Operation, context: Context) -> Kernel:
    dtype = context.dtype(op.results[0].type)

    def kernel(real: Array, imaginary: Array) -> Array:
        result = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), dtype)
        result.real, result.imag = real, imaginary
        return result

    return kernel
