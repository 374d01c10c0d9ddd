"""What numbers does a constant hold?

A constant is xDSL's `DenseIntOrFPElementsAttr`: `data` holds one element for a splat of any shape
(never expanded) and otherwise all of them, little-endian, row-major. Every element takes whole
bytes: i1, i4 and f4 take one byte each, i1 as 0 or 1, i4 as ml_dtypes stores it (sign-extended).
"""

from __future__ import annotations

import struct
from math import isfinite, prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Attribute

from .dtypes import element_type, numpy_dtype

Dense = DenseIntOrFPElementsAttr[Any]


def dense_attribute(tensor_type: Attribute, data: bytes) -> Dense:
    """A constant of this type from its raw bytes (one element: a splat).

    Built without xDSL's checks, which refuse empty tensors and quantised element types.
    """
    attribute = DenseIntOrFPElementsAttr.__new__(DenseIntOrFPElementsAttr)
    object.__setattr__(attribute, "type", tensor_type)
    object.__setattr__(attribute, "data", BytesAttr(data))
    return attribute


def _raw(attribute: Dense) -> np.ndarray[Any, np.dtype[Any]]:
    dtype = numpy_dtype(attribute.type.element_type)
    return np.frombuffer(attribute.data.data, dtype=dtype)


def is_splat(attribute: Dense) -> bool:
    """Whether all elements are held as one (also true of a constant that has one element)."""
    dtype = numpy_dtype(attribute.type.element_type)
    return len(attribute.data.data) == dtype.itemsize


def to_numpy(attribute: Dense) -> np.ndarray[Any, np.dtype[Any]]:
    """The constant as a read-only array of its shape; a splat is a broadcast view.

    Raises `PartirError` if the element type has no dtype.
    """
    flat = _raw(attribute)
    shape = attribute.get_shape()
    if flat.size == 1 and prod(shape) != 1:
        return np.broadcast_to(flat.reshape(()), shape)
    return flat.reshape(shape)


def from_numpy(array: np.ndarray[Any, np.dtype[Any]]) -> Dense:
    """A constant that holds this array; a splat when all its elements are equal bit by bit."""
    tensor_type = TensorType(element_type(array.dtype), array.shape)
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.byteorder == ">":
        flat = flat.astype(flat.dtype.newbyteorder("<"))
    data = flat.tobytes()
    size = flat.dtype.itemsize
    if flat.size > 1 and data == data[:size] * flat.size:
        data = data[:size]
    return dense_attribute(tensor_type, data)


def element_bytes_of(value: float, float_type: Attribute) -> bytes:
    """The little-endian bytes of one float of this type, rounded to nearest even."""
    dtype = numpy_dtype(float_type)
    if dtype == np.float32:
        return struct.pack("<f", value) if isfinite(value) else _wide_nonfinite(value)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return np.array([value], np.float64).astype(dtype).tobytes()


def _wide_nonfinite(value: float) -> bytes:
    with np.errstate(invalid="ignore"):
        return np.array([value], np.float64).astype(np.float32).tobytes()
