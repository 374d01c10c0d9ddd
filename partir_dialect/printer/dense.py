"""How are the numbers of a constant written, so that they read back bit by bit?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

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


@cache
def _digits(dtype: np.dtype[Any]) -> int:
    return {8: 17, 4: 9}.get(dtype.itemsize, 9)


def float_text(data: bytes, element: Attribute) -> str:
    """One float as MLIR writes it: `1.000000e+00` where that is exact, else more digits.

    What is not finite is its bit pattern in hexadecimal.
    """
    dtype = numpy_dtype(element)
    value = float(np.frombuffer(data, dtype)[0])
    if not math.isfinite(value):
        return _bits_text(data)
    for text in (f"{value:.6e}", f"{value:.{_digits(dtype)}g}"):
        if "." in text and narrow(np.array([float(text)]), dtype).tobytes() == data:
            return text
    return _bits_text(data)


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
