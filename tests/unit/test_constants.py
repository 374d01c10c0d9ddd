"""Element types, their dtypes and sizes, and constants as arrays."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import builtin as b
from xdsl.ir import Attribute

from partir.partir_dialect.constants import from_numpy, is_splat, to_numpy
from partir.partir_dialect.dtypes import (
    FLOAT_TYPES,
    element_bytes,
    element_type,
    numpy_dtype,
    type_text,
)
from partir.partir_dialect.errors import PartirError


@pytest.mark.parametrize(
    ("type_", "dtype", "size", "text"),
    [
        (b.f32, np.float32, 4, "f32"),
        (b.f64, np.float64, 8, "f64"),
        (b.f16, np.float16, 2, "f16"),
        (b.bf16, ml_dtypes.bfloat16, 2, "bf16"),
        (FLOAT_TYPES["f8E4M3FN"], ml_dtypes.float8_e4m3fn, 1, "f8E4M3FN"),
        (FLOAT_TYPES["f4E2M1FN"], ml_dtypes.float4_e2m1fn, 0.5, "f4E2M1FN"),
        (b.i1, np.bool_, 1, "i1"),
        (b.IntegerType(4), ml_dtypes.int4, 0.5, "i4"),
        (b.i32, np.int32, 4, "i32"),
        (b.IntegerType(8, b.Signedness.UNSIGNED), np.uint8, 1, "ui8"),
        (b.IntegerType(64, b.Signedness.UNSIGNED), np.uint64, 8, "ui64"),
        (b.ComplexType(b.f32), np.complex64, 8, "complex<f32>"),
        (b.ComplexType(b.f64), np.complex128, 16, "complex<f64>"),
    ],
)
def test_element_types(type_: Attribute, dtype: type[np.generic], size: float, text: str) -> None:
    assert numpy_dtype(type_) == np.dtype(dtype)
    assert element_type(dtype) == type_
    assert element_bytes(type_) == size
    assert type_text(type_) == text


@pytest.mark.parametrize("type_", [b.IntegerType(3), b.NoneType(), b.TupleType(b.ArrayAttr([]))])
def test_types_without_a_dtype(type_: Attribute) -> None:
    with pytest.raises(PartirError, match="no NumPy dtype for element type"):
        numpy_dtype(type_)


def test_a_dtype_without_a_type() -> None:
    with pytest.raises(PartirError, match="no StableHLO element type"):
        element_type(np.dtype("U4"))


def test_constants_are_views() -> None:
    constant = from_numpy(np.full((300, 400), 2.5, np.float32))
    assert is_splat(constant)
    assert len(constant.data.data) == 4
    array = to_numpy(constant)
    assert array.shape == (300, 400)
    assert array.strides == (0, 0)
    assert not array.flags.writeable
    np.testing.assert_array_equal(array, np.full((300, 400), 2.5, np.float32))


def test_equal_bits_not_equal_values_make_a_splat() -> None:
    assert not is_splat(from_numpy(np.array([0.0, -0.0], np.float32)))
    assert is_splat(from_numpy(np.array([np.nan, np.nan], np.float32)))


def test_order_and_layout_do_not_matter() -> None:
    array = np.arange(6, dtype=">i4").reshape(2, 3)
    np.testing.assert_array_equal(to_numpy(from_numpy(array)), array)
    np.testing.assert_array_equal(to_numpy(from_numpy(array.astype("<i4").T)), array.T)


def test_empty_constants() -> None:
    constant = from_numpy(np.zeros((0, 3), np.int8))
    assert to_numpy(constant).shape == (0, 3)
    assert not is_splat(constant)
