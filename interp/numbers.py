"""What arithmetic means for each type: XLA's rules where NumPy's differ.

Integers wrap, division by zero is all ones, shifts beyond the width give zero or the sign, floats
become integers by truncation and saturation, and types narrower than 32 bits compute in f32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import ml_dtypes
import numpy as np

from .registry import Array

BOOL = np.dtype(np.bool_)


@cache
def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether the dtype is a real floating-point type, ml_dtypes' included."""
    return dtype.kind == "f" or (dtype.kind == "V" and not is_integer(dtype))


@cache
def is_integer(dtype: np.dtype[Any]) -> bool:
    """Whether the dtype is an integer type (not bool), 2 and 4 bits included."""
    return dtype.kind in "iu" or dtype.name in _NARROW_INTEGERS


_NARROW_INTEGERS = {"int1", "uint1", "int2", "uint2", "int4", "uint4"}


@cache
def is_signed(dtype: np.dtype[Any]) -> bool:
    """Whether an integer dtype is signed."""
    return dtype.kind == "i" or (dtype.name in _NARROW_INTEGERS and dtype.name.startswith("int"))


def float_info(dtype: np.dtype[Any]) -> Any:
    """What `finfo` says of a real float type (bits, nmant, eps)."""
    return cast(Any, ml_dtypes.finfo)(dtype)


@cache
def bits(dtype: np.dtype[Any]) -> int:
    """The width of one element in bits."""
    if dtype == BOOL:
        return 1
    if dtype.name in _NARROW_INTEGERS:
        return int(dtype.name.removeprefix("u").removeprefix("int"))
    if dtype.kind == "V":
        return int(float_info(dtype).bits)
    return dtype.itemsize * 8


@cache
def wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which to compute: f32 for narrow floats, a byte for narrow integers."""
    if dtype.name in _NARROW_INTEGERS:
        return np.dtype(np.int8 if is_signed(dtype) else np.uint8)
    if dtype.kind in "fV" and dtype.itemsize < 4:
        return np.dtype(np.float32)
    return dtype


def narrow(array: Array, dtype: np.dtype[Any]) -> Array:
    """Rounds (floats) or wraps (integers) a computed array to `dtype`."""
    if array.dtype == dtype:
        return array
    if dtype.name in _NARROW_INTEGERS:
        return _wrap(array, dtype)
    return array.astype(dtype)


def _wrap(array: Array, dtype: np.dtype[Any]) -> Array:
    """Keeps the low bits of an integer array."""
    width = bits(dtype)
    low = array.astype(np.int64) & ((1 << width) - 1)
    if is_signed(dtype):
        low = np.where(low >> (width - 1), low - (1 << width), low)
    return low.astype(np.int8 if is_signed(dtype) else np.uint8).astype(dtype)


def widened(function: Callable[..., Any]) -> Callable[..., Array]:
    """A function that computes narrow types in the type `wide` gives, and rounds once."""

    def compute(*arrays: Array) -> Array:
        dtype = arrays[0].dtype
        target = wide(dtype)
        if target is dtype or target == dtype:
            return np.asarray(function(*arrays))
        return narrow(np.asarray(function(*(a.astype(target) for a in arrays))), dtype)

    return compute


# ----------------------------------------------------------------------------- division, shifts


def divide(a: Array, b: Array) -> Array:
    """Truncated division; x/0 is all ones, INT_MIN/-1 is INT_MIN."""
    if a.dtype.kind not in "iu":
        return np.divide(a, b)
    zero = b == 0
    safe = np.where(zero, a.dtype.type(1), b)
    if a.dtype.kind == "u":
        return np.where(zero, np.iinfo(a.dtype).max, np.floor_divide(a, safe)).astype(a.dtype)
    minus = safe == -1  # NumPy's own INT_MIN // -1 is undefined
    safe = np.where(minus, a.dtype.type(1), safe)
    floor = np.floor_divide(a, safe)
    truncated = floor + ((a - floor * safe != 0) & ((a < 0) != (safe < 0)))
    quotient = np.where(minus, np.negative(a), truncated)
    return np.where(zero, a.dtype.type(-1), quotient).astype(a.dtype)


def remainder(a: Array, b: Array) -> Array:
    """The remainder of truncated division, with the sign of `a`; x rem 0 is x."""
    if a.dtype.kind not in "iu":
        return np.fmod(a, b)
    special = b == 0
    trivial = special if a.dtype.kind == "u" else special | (b == -1)
    rest = np.fmod(a, np.where(trivial, a.dtype.type(1), b))
    return np.where(special, a, rest).astype(a.dtype)


def _beyond(a: Array, b: Array) -> Array:
    """Where a shift amount, read as unsigned, is at least the width."""
    return (b < 0) | (b >= bits(a.dtype)) if b.dtype.kind == "i" else b >= bits(a.dtype)


def shift_left(a: Array, b: Array) -> Array:
    """`a << b`, zero beyond the width."""
    beyond = _beyond(a, b)
    return np.where(beyond, a.dtype.type(0), np.left_shift(a, np.where(beyond, 0, b)))


def shift_right_arithmetic(a: Array, b: Array) -> Array:
    """`a >> b` with the sign shifted in; beyond the width all sign."""
    signed = a.view(np.dtype(f"i{a.dtype.itemsize}"))
    amount = np.where(_beyond(a, b), bits(a.dtype) - 1, b).astype(signed.dtype)
    return np.asarray(np.right_shift(signed, amount)).view(a.dtype)


def shift_right_logical(a: Array, b: Array) -> Array:
    """`a >> b` with zeros shifted in; zero beyond the width."""
    unsigned = a.view(np.dtype(f"u{a.dtype.itemsize}"))
    beyond = _beyond(a, b)
    amount = np.where(beyond, 0, b).astype(unsigned.dtype)
    shifted = np.right_shift(unsigned, amount)
    return np.where(beyond, unsigned.dtype.type(0), shifted).view(a.dtype)


def power(a: Array, b: Array) -> Array:
    """`a ** b`; for integers modulo the width, and 0 for negative exponents unless a is ±1."""
    if a.dtype.kind not in "iu":
        return np.power(a, b)
    result, base = np.ones_like(a + b), a + np.zeros_like(b)
    exponent = np.where(b < 0, 0, b).astype(np.uint64)
    one = np.uint64(1)
    while exponent.any():
        result = np.where((exponent & one) == one, result * base, result)
        base, exponent = base * base, exponent >> one
    if a.dtype.kind == "u":
        return result.astype(a.dtype)
    odd = (b & 1) == 1
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(odd, -1, 1), 0))
    return np.where(b < 0, inverse, result).astype(a.dtype)


# ----------------------------------------------------------------------------- bits


def count_leading_zeros(a: Array) -> Array:
    """The number of zero bits above the highest one."""
    width = bits(a.dtype)
    rest = a.view(np.dtype(f"u{a.dtype.itemsize}")).astype(np.uint64)
    count = np.zeros(a.shape, np.int64)
    for shift in (32, 16, 8, 4, 2, 1):
        high = rest >> np.uint64(shift)
        count += np.where(high > 0, shift, 0)
        rest = np.where(high > 0, high, rest)
    length = count + (rest > 0)
    return (width - length).astype(a.dtype)


def popcount(a: Array) -> Array:
    """The number of one bits."""
    return np.bitwise_count(a.view(np.dtype(f"u{a.dtype.itemsize}"))).astype(a.dtype)


def to_bits(a: Array) -> Array:
    """The elements as unsigned integers of the same width."""
    return a.view(np.dtype(f"u{a.dtype.itemsize}"))


def total_order_key(a: Array) -> Array:
    """Signed integers that order floats totally: -NaN < -inf < … < -0 < +0 < … < inf < NaN."""
    signed = np.asarray(a).view(np.dtype(f"i{a.dtype.itemsize}"))
    return np.where(signed < 0, signed ^ np.iinfo(signed.dtype).max, signed)


def bitcast(a: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """The same bits seen as `dtype`; a change of width splits or merges a minor dimension."""
    source, target = bits(a.dtype), bits(dtype)
    if source >= 8 and target >= 8:
        return np.ascontiguousarray(a).reshape(-1).view(dtype).reshape(shape)
    stream = _unpack(a, source)
    return _pack(stream, dtype, target).reshape(shape)


def _unpack(a: Array, width: int) -> Array:
    """The bits of all elements, least significant first."""
    raw = np.ascontiguousarray(a).reshape(-1).view(np.uint8).reshape(a.size, a.dtype.itemsize)
    spread = np.unpackbits(raw, axis=1, bitorder="little")
    return spread[:, :width].reshape(-1)


def _pack(stream: Array, dtype: np.dtype[Any], width: int) -> Array:
    count = stream.size // width
    padded = np.zeros((count, dtype.itemsize * 8), np.uint8)
    padded[:, :width] = stream.reshape(count, width)
    if is_signed(dtype) and width < 8:
        padded[:, width:] = padded[:, width - 1 : width]
    return np.packbits(padded, axis=1, bitorder="little").reshape(-1).view(dtype)


# ----------------------------------------------------------------------------- conversion


def convert(a: Array, dtype: np.dtype[Any]) -> Array:
    """`stablehlo.convert`: truncation and saturation to integers, wrapping between integers."""
    if a.dtype == dtype:
        return a
    if a.dtype.kind == "c" and dtype.kind != "c":
        a = np.asarray(np.real(a))
    if dtype == BOOL:
        return np.asarray(a != 0)
    if is_integer(dtype):
        if is_float(a.dtype):
            return _saturate(a, dtype)
        return narrow(a.astype(wide(a.dtype)), dtype)
    return a.astype(wide(a.dtype)).astype(dtype)


def _saturate(a: Array, dtype: np.dtype[Any]) -> Array:
    width = bits(dtype)
    low = -(1 << (width - 1)) if is_signed(dtype) else 0
    high = (1 << (width - (1 if is_signed(dtype) else 0))) - 1
    values = np.trunc(a.astype(np.float64))
    store = wide(dtype)
    inside = (values > low) & (values < high)
    whole = np.where(inside, values, 0).astype(np.uint64 if store == np.uint64 else np.int64)
    whole = np.where(values >= high, np.array(high).astype(whole.dtype), whole)
    whole = np.where(values <= low, np.array(low).astype(whole.dtype), whole)
    return narrow(np.where(np.isnan(values), 0, whole).astype(store), dtype)


def reduce_precision(a: Array, exponent: int, mantissa: int) -> Array:
    """Rounds to a float of `exponent` and `mantissa` bits, nearest even, in the same type."""
    info = float_info(a.dtype)
    store = np.dtype(f"u{a.dtype.itemsize}")
    own_mantissa, own_exponent = int(info.nmant), bits(a.dtype) - 1 - int(info.nmant)
    pattern = np.asarray(a).view(store).astype(np.uint64)
    if mantissa < own_mantissa:
        drop = own_mantissa - mantissa
        last = (pattern >> np.uint64(drop)) & np.uint64(1)
        pattern = pattern + np.uint64((1 << (drop - 1)) - 1) + last
        pattern &= ~np.uint64((1 << drop) - 1)
    if exponent < own_exponent:
        pattern = _clip_exponent(pattern, exponent, own_exponent, own_mantissa)
    rounded = pattern.astype(store).view(a.dtype)
    nan: Array = a if mantissa else np.copysign(a.dtype.type(np.inf), a)  # no bit is left for it
    return np.where(np.isnan(a.astype(wide(a.dtype))), nan, rounded).astype(a.dtype)


def _clip_exponent(pattern: Array, exponent: int, own: int, mantissa: int) -> Array:
    """Exponents too large become infinity, too small become zero; signs stay."""
    bias = (1 << (own - 1)) - 1
    reach = (1 << (exponent - 1)) - 1
    sign = pattern & np.uint64(1 << (own + mantissa))
    field = (pattern >> np.uint64(mantissa)) & np.uint64((1 << own) - 1)
    infinity = sign | np.uint64(((1 << own) - 1) << mantissa)
    pattern = np.where(field > np.uint64(bias + reach), infinity, pattern)
    return np.where(field <= np.uint64(bias - reach), sign, pattern)
