"""How are the numbers of a constant written, so that they read back bit by bit?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IndexType,
)
from xdsl.ir import Attribute

from ..dtypes import complex_part, integer_facts, numpy_dtype
from ..reader.dense import element_size, narrow

_HEX_FROM = 100
"""MLIR writes constants of more elements than this as one hexadecimal string."""


def _bits_text(data: bytes) -> str:
    return f"0x{int.from_bytes(data, 'little'):0{2 * len(data)}X}"


def _significant(value: float, precision: int) -> tuple[str, int]:
    """Digits and power of ten of a positive float, to about this many digits, as LLVM cuts them.

    LLVM drops digits twice, first by truncation of what its estimate of the length allows, then
    by rounding; the texts of MLIR show it.
    """
    numerator, denominator = value.as_integer_ratio()
    exponent = 1 - denominator.bit_length()
    digits = numerator * 5**-exponent
    spare = digits.bit_length() - (precision * 196 + 58) // 59
    if spare > 0 and (removable := spare * 59 // 196):
        exponent += removable
        digits //= 10**removable
    text = str(digits)
    if len(text) > precision:
        exponent += len(text) - precision
        text, dropped = text[:precision], text[precision:]
        if dropped[0] >= "5":
            bare = text.rstrip("9")
            exponent += len(text) - len(bare)
            text = bare[:-1] + str(int(bare[-1]) + 1) if bare else "1"
    short = text.rstrip("0") or "0"
    return short, exponent + len(text) - len(short)


def _scientific(digits: str, exponent: int) -> str:
    """`8.984370e-01`."""
    power = exponent + len(digits) - 1
    sign = "-" if power < 0 else "+"
    return f"{digits[0]}.{digits[1:].ljust(6, '0')}e{sign}{abs(power):02d}"


def _default(digits: str, exponent: int, precision: int) -> str:
    """`0.797884583`, `9.99999974E-6`; without a point if it has no fraction."""
    power = exponent + len(digits) - 1
    large = exponent > 3 or len(digits) + exponent > precision
    if large if exponent >= 0 else power < -3:
        sign = "-" if power < 0 else "+"
        return f"{digits[0]}.{digits[1:] or '0'}E{sign}{abs(power)}"
    if exponent >= 0:
        return digits + "0" * exponent
    whole = len(digits) + exponent
    return f"{digits[:whole]}.{digits[whole:]}" if whole > 0 else f"0.{'0' * -whole}{digits}"


def float_text(data: bytes, element: Attribute) -> str:
    """One float as MLIR writes it: `1.000000e+00` where that reads back, else more digits.

    What has no such text is its bit pattern in hexadecimal.
    """
    dtype = numpy_dtype(element)
    value = float(np.frombuffer(data, dtype)[0])
    if not math.isfinite(value):
        return _bits_text(data)
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0.0:
        return f"{sign}0.000000e+00"
    precision = 2 + _mantissa_bits(element) * 59 // 196
    for text in (
        _scientific(*_significant(abs(value), 6)),
        _default(*_significant(abs(value), precision), precision),
    ):
        number = float(sign + text)
        if "." in text and narrow(np.array([number]), dtype).tobytes() == data:
            return sign + text
    return _bits_text(data)


@cache
def _mantissa_bits(element: Attribute) -> int:
    """Bits of a float's significand, the implied one among them."""
    return cast(Any, ml_dtypes).finfo(numpy_dtype(element)).nmant + 1


def _integer_texts(data: bytes, element: Attribute) -> list[str]:
    size = element_size(element)
    width, unsigned = integer_facts(element) or (64, False)
    if width == 1:
        return ["true" if byte else "false" for byte in data]
    if size <= 8:
        return [str(v) for v in np.frombuffer(data, f"{'u' if unsigned else 'i'}{size}").tolist()]
    starts = range(0, len(data), size)
    return [str(int.from_bytes(data[s : s + size], "little", signed=not unsigned)) for s in starts]


def element_texts(data: bytes, element: Attribute) -> list[str]:
    """Each element of a constant as MLIR writes it."""
    if (real := complex_part(element)) is not None:
        parts = element_texts(data, real)
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return [f"({left},{right})" for left, right in pairs]
    if integer_facts(element) or isinstance(element, IndexType):
        return _integer_texts(data, element)
    size = element_size(element)
    return [float_text(data[s : s + size], element) for s in range(0, len(data), size)]


def _blob(data: bytes, element: Attribute) -> bytes:
    """The bytes as MLIR keeps them: integers below eight bits are not sign-extended."""
    width, _ = integer_facts(element) or (8, False)
    if width < 8:
        mask = (1 << width) - 1
        return bytes(byte & mask for byte in data)
    return data


def _nested(texts: Sequence[str], shape: Sequence[int]) -> str:
    """`[[a, b], [c, d]]`."""
    rows = list(texts)
    for size in reversed(shape[1:]):
        rows = ["[" + ", ".join(rows[i : i + size]) + "]" for i in range(0, len(rows), size)]
    return "[" + ", ".join(rows) + "]"


def dense_text(attribute: DenseIntOrFPElementsAttr[Any], type_: str) -> str:
    """`dense<…> : type`, `type_` being the text of its type."""
    element = attribute.type.element_type
    data = attribute.data.data
    shape = attribute.get_shape()
    count = prod(shape)
    if not data:
        return f"dense<> : {type_}"
    if len(data) == element_size(element):
        return f"dense<{element_texts(data, element)[0]}> : {type_}"
    if count > _HEX_FROM:
        return f'dense<"0x{_blob(data, element).hex().upper()}"> : {type_}'
    return f"dense<{_nested(element_texts(data, element), shape)}> : {type_}"
