"""Which bytes does `dense<…> : type` hold?

Hexadecimal literals of float types are bit patterns; a splat stays one element; nothing is
allocated that the text does not spell out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute

from ..dtypes import FLOAT_TYPES, complex_part, integer_facts, numpy_dtype, type_text
from ..errors import PartirError

Array = np.ndarray[Any, np.dtype[Any]]

_PAIR = re.compile(r"(?a)\(([^(),\[\]]*),([^(),\[\]]*)\)")
_VALUE = re.compile(r"(?a)[^\[\],]+")
_FLOAT = re.compile(r"(?a)[-+]?\d+\.\d*(?:[eE][-+]?\d+)?\Z")
_HEX = re.compile(r"(?a)-?0x[0-9a-fA-F]+\Z")
_INTEGER = re.compile(r"(?a)-?(?:0x[0-9a-fA-F]+|\d+)\Z")
_BOOLS = {"true": 1, "false": 0}
_FLOATS = set(FLOAT_TYPES.values())


class BadConstant(Exception):
    """Why a literal does not fit its type; the reader adds the place."""


def narrow(values: Array, dtype: np.dtype[Any]) -> Array:
    """float64 values rounded once, to nearest even, to `dtype`.

    `ml_dtypes` rounds twice (through float32); rounding to odd first makes that harmless.
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if dtype.name in ("float64", "float32", "float16"):
            return values.astype(dtype)
        single = values.astype(np.float32)
        back = single.astype(np.float64)
        inexact = (back != values) & np.isfinite(values) & np.isfinite(back)
        if inexact.any():
            bits = single.view(np.uint32)
            away = np.abs(back) > np.abs(values)
            truncated = bits - (away & inexact)
            single = np.where(inexact, truncated | 1, bits).astype(np.uint32).view(np.float32)
        return single.astype(dtype)


def float_values(texts: Sequence[str], element: Attribute) -> bytes:
    """Bytes of float literals; hexadecimal ones are bit patterns of the element type."""
    dtype = numpy_dtype(element)
    bad = next((t for t in texts if not (_FLOAT.match(t) or _HEX.match(t))), None)
    if bad is not None:
        raise BadConstant(f"expected a float literal of type {type_text(element)}, got: {bad[:60]}")
    hexes = [(i, int(t, 16)) for i, t in enumerate(texts) if _HEX.match(t)]
    decimal = [0.0 if "x" in t else float(t) for t in texts] if hexes else list(map(float, texts))
    array = narrow(np.array(decimal, np.float64), dtype)
    if hexes:
        bits = np.array(array).view(np.dtype(f"u{dtype.itemsize}"))
        width = _bits(element)
        for index, value in hexes:
            if not 0 <= value < 1 << width:
                raise BadConstant(f"hexadecimal float does not fit {type_text(element)}")
            bits[index] = value
        return bits.tobytes()
    return array.tobytes()


def _bits(element: Attribute) -> int:
    text = type_text(element)
    match = re.match(r"(?:b|t)?f(\d+)", text)
    assert match is not None
    return int(match[1]) if text != "tf32" else 32


def _integer(text: str) -> int:
    if text in _BOOLS:
        return _BOOLS[text]
    if not _INTEGER.match(text):
        raise BadConstant(f"expected an integer literal, got: {text[:60]}")
    if len(text) > 400:
        raise BadConstant("integer literal is too long")
    return int(text, 16) if "x" in text else int(text)


def integer_values(texts: Sequence[str], element: Attribute) -> bytes:
    """Bytes of integer literals, sign-extended to whole bytes; i1 gives 0 or 1."""
    width, unsigned = integer_facts(element) or (64, False)
    if width != 1 and (bad := next((t for t in texts if t in _BOOLS), None)) is not None:
        raise BadConstant(f"only i1 has the values true and false, got: {bad}")
    values = [_integer(text) for text in texts]
    low = 0 if unsigned else -(1 << (width - 1))
    for value in values:
        if not low <= value < 1 << width:
            raise BadConstant(f"integer constant out of range for {element}, got: {value}")
    return pack_integers(values, width, unsigned)


def pack_integers(values: Sequence[int], width: int, unsigned: bool) -> bytes:
    """Little-endian bytes, each integer in 1, 2, 4, 8… whole bytes."""
    size = max(1, 1 << ((width + 7) // 8 - 1).bit_length())
    if width == 1:
        return bytes(value & 1 for value in values)
    mask = (1 << width) - 1
    if unsigned:
        wrapped = [value & mask for value in values]
    else:
        half = 1 << (width - 1)
        wrapped = [((value + half) & mask) - half for value in values]
    if size <= 8:
        return np.array(wrapped, dtype=f"{'u' if unsigned else 'i'}{size}").tobytes()
    return b"".join(value.to_bytes(size, "little", signed=not unsigned) for value in wrapped)


def _literal_bytes(texts: Sequence[str], element: Attribute) -> bytes:
    if (real := complex_part(element)) is not None:
        parts = [part.strip() for text in texts for part in text.split(";")]
        if len(parts) != 2 * len(texts):
            raise BadConstant("a complex constant needs pairs (real, imaginary)")
        return _literal_bytes(parts, real)
    if any(";" in text for text in texts):
        raise BadConstant(f"unexpected pair in a constant of type {type_text(element)}")
    if integer_facts(element) or isinstance(element, IndexType):
        return integer_values(texts, element)
    if element in _FLOATS:
        return float_values(texts, element)
    raise BadConstant(f"no constants of this element type, got: {element}")


def _skeleton(shape: Sequence[int]) -> str:
    text = "v"
    for size in reversed(shape):
        text = "[" + ",".join([text] * size) + "]"
    return text


def element_size(element: Attribute) -> int:
    """Bytes one element takes in a constant's data."""
    if (real := complex_part(element)) is not None:
        return 2 * element_size(real)
    if facts := integer_facts(element):
        return max(1, 1 << ((facts[0] + 7) // 8 - 1).bit_length())
    return numpy_dtype(element).itemsize


def shrink(data: bytes, element: Attribute, count: int) -> bytes:
    """One element if all `count` of them are the same bytes."""
    size = element_size(element)
    if count > 1 and len(data) == size * count and data == data[:size] * count:
        return data[:size]
    return data


def literal_bytes(body: str, shape: Sequence[int], element: Attribute) -> bytes:
    """The data of `dense<body>` for a tensor of this shape. Raises `BadConstant`."""
    body = body.strip()
    count = prod(shape)
    if not body:
        if count:
            raise BadConstant(f"constant without elements for a shape of {count} elements")
        return b""
    try:
        if "(" in body:
            body = _PAIR.sub(r"\1;\2", body)
        if "[" not in body:
            return _literal_bytes([body], element)
        squeezed = re.sub(r"\s+", "", body) if re.search(r"\s", body) else body
        values = _VALUE.findall(squeezed)
        if len(values) != count or _VALUE.sub("v", squeezed) != _skeleton(shape):
            raise BadConstant(f"elements do not have the shape of the type, which is {list(shape)}")
        return shrink(_literal_bytes(values, element), element, count)
    except PartirError as error:
        raise BadConstant(error.message) from error


def blob_bytes(text: str, shape: Sequence[int], element: Attribute) -> bytes:
    """The data of `dense<"0x…">`: raw little-endian bytes, i1 a byte or a bit an element."""
    try:
        data = bytes.fromhex(text[2:]) if text.startswith("0x") else None
    except ValueError:
        data = None
    if data is None:
        raise BadConstant("expected a hexadecimal string")
    count = prod(shape)
    if element == IntegerType(1):
        return shrink(_unpacked_bits(data, count), element, count)
    try:
        size = element_size(element)
    except PartirError as error:
        raise BadConstant(error.message) from error
    if (facts := integer_facts(element)) and facts[0] < 8:
        data = pack_integers(list(data), *facts)
    if len(data) == size:
        return data
    if len(data) != size * count:
        raise BadConstant(f"constant has {len(data)} bytes, its type needs {size * count}")
    return shrink(data, element, count)


def _unpacked_bits(data: bytes, count: int) -> bytes:
    if len(data) == 1 and data in (b"\xff", b"\x00") and count != 1:
        return b"\x01" if data == b"\xff" else b"\x00"
    if len(data) == count:
        return bytes(1 if byte else 0 for byte in data)
    if len(data) == (count + 7) // 8:
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        return bits[:count].tobytes()
    raise BadConstant(f"constant has {len(data)} bytes for {count} values of i1")


__all__ = ["BadConstant", "blob_bytes", "element_size", "literal_bytes", "narrow", "shrink"]
