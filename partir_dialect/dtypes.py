"""Which NumPy dtype holds an element type, and how is it spelled?

One table for both directions. Types that NumPy lacks (bf16, f8…, i4, f4) come from `ml_dtypes`;
every element takes at least one byte in NumPy, `element_bytes` gives what a device stores.
"""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.dialects import builtin
from xdsl.dialects.builtin import ComplexType, IndexType, IntegerType, Signedness, TensorType
from xdsl.ir import Attribute

from .errors import PartirError

_FLOATS: dict[str, tuple[Attribute, np.dtype[np.generic], int]] = {
    # spelling: (type, dtype, bits)
    "f64": (builtin.f64, np.dtype(np.float64), 64),
    "f32": (builtin.f32, np.dtype(np.float32), 32),
    "f16": (builtin.f16, np.dtype(np.float16), 16),
    "bf16": (builtin.bf16, np.dtype(ml_dtypes.bfloat16), 16),
    "tf32": (builtin.FloatTF32Type(), np.dtype(np.float32), 19),
    "f8E3M4": (builtin.Float8E3M4Type(), np.dtype(ml_dtypes.float8_e3m4), 8),
    "f8E4M3": (builtin.Float8E4M3Type(), np.dtype(ml_dtypes.float8_e4m3), 8),
    "f8E4M3FN": (builtin.Float8E4M3FNType(), np.dtype(ml_dtypes.float8_e4m3fn), 8),
    "f8E4M3FNUZ": (builtin.Float8E4M3FNUZType(), np.dtype(ml_dtypes.float8_e4m3fnuz), 8),
    "f8E4M3B11FNUZ": (
        builtin.Float8E4M3B11FNUZType(),
        np.dtype(ml_dtypes.float8_e4m3b11fnuz),
        8,
    ),
    "f8E5M2": (builtin.Float8E5M2Type(), np.dtype(ml_dtypes.float8_e5m2), 8),
    "f8E5M2FNUZ": (builtin.Float8E5M2FNUZType(), np.dtype(ml_dtypes.float8_e5m2fnuz), 8),
    "f8E8M0FNU": (builtin.Float8E8M0FNUType(), np.dtype(ml_dtypes.float8_e8m0fnu), 8),
    "f6E2M3FN": (builtin.Float6E2M3FNType(), np.dtype(ml_dtypes.float6_e2m3fn), 6),
    "f6E3M2FN": (builtin.Float6E3M2FNType(), np.dtype(ml_dtypes.float6_e3m2fn), 6),
    "f4E2M1FN": (builtin.Float4E2M1FNType(), np.dtype(ml_dtypes.float4_e2m1fn), 4),
}
FLOAT_TYPES: dict[str, Attribute] = {name: row[0] for name, row in _FLOATS.items()}
_FLOAT_ROWS = {row[0]: (name, row[1], row[2]) for name, row in _FLOATS.items()}

_SMALL_INTEGERS: dict[tuple[int, bool], np.dtype[np.generic]] = {
    (2, False): np.dtype(ml_dtypes.int2),
    (4, False): np.dtype(ml_dtypes.int4),
    (2, True): np.dtype(ml_dtypes.uint2),
    (4, True): np.dtype(ml_dtypes.uint4),
}


def _integer_dtype(width: int, unsigned: bool) -> np.dtype[np.generic] | None:
    if width == 1:
        return np.dtype(np.bool_)
    if small := _SMALL_INTEGERS.get((width, unsigned)):
        return small
    if width in (8, 16, 32, 64):
        return np.dtype(f"{'u' if unsigned else 'i'}{width // 8}")
    return None


def _unsupported(element_type: Attribute) -> PartirError:
    return PartirError(f"no NumPy dtype for element type, got: {element_type}")


def integer_facts(element_type: Attribute) -> tuple[int, bool] | None:
    """Width in bits and whether unsigned, if this is an integer type."""
    if not isinstance(element_type, IntegerType):
        return None
    integer = cast("IntegerType[int, Signedness]", element_type)
    return integer.width.data, integer.signedness.data == Signedness.UNSIGNED


def complex_part(element_type: Attribute) -> Attribute | None:
    """The type of the real part, if this is a complex type."""
    if not isinstance(element_type, ComplexType):
        return None
    return cast("ComplexType[Any]", element_type).element_type


def numpy_dtype(element_type: Attribute) -> np.dtype[np.generic]:
    """The dtype that holds one element: f32 → float32, bf16 → ml_dtypes.bfloat16, i1 → bool.

    Raises `PartirError` for types without one (tokens, tuples, quantised types, i3, …).
    """
    if row := _FLOAT_ROWS.get(element_type):
        return row[1]
    if (facts := integer_facts(element_type)) and (dtype := _integer_dtype(*facts)) is not None:
        return dtype
    if isinstance(element_type, IndexType):
        return np.dtype(np.int64)
    if (real := complex_part(element_type)) is not None:
        part = numpy_dtype(real)
        if part == np.float32:
            return np.dtype(np.complex64)
        if part == np.float64:
            return np.dtype(np.complex128)
    raise _unsupported(element_type)


_BY_DTYPE: dict[np.dtype[np.generic], Attribute] = {
    **{row[1]: row[0] for name, row in _FLOATS.items() if name != "tf32"},
    np.dtype(np.bool_): builtin.i1,
    **{
        np.dtype(f"{kind}{size}"): IntegerType(
            8 * size, Signedness.UNSIGNED if kind == "u" else Signedness.SIGNLESS
        )
        for kind in "iu"
        for size in (1, 2, 4, 8)
    },
    **{
        dtype: IntegerType(width, Signedness.UNSIGNED if unsigned else Signedness.SIGNLESS)
        for (width, unsigned), dtype in _SMALL_INTEGERS.items()
    },
    np.dtype(np.complex64): ComplexType(builtin.f32),
    np.dtype(np.complex128): ComplexType(builtin.f64),
}


def element_type(dtype: np.dtype[np.generic] | type[np.generic]) -> Attribute:
    """The element type that a dtype stands for; the inverse of `numpy_dtype`.

    Raises `PartirError` for dtypes that StableHLO has no type for (strings, objects, …).
    """
    if (found := _BY_DTYPE.get(np.dtype(dtype).newbyteorder("="))) is not None:
        return found
    raise PartirError(f"no StableHLO element type for NumPy dtype, got: {np.dtype(dtype)}")


def real_part(tensor_type: Attribute) -> Attribute | None:
    """tensor<2xcomplex<f32>> → tensor<2xf32>; nothing for other types."""
    if not isinstance(tensor_type, TensorType):
        return None
    tensor = cast("TensorType[Attribute]", tensor_type)
    part = complex_part(tensor.element_type)
    return None if part is None else TensorType(part, tensor.get_shape(), tensor.encoding)


def element_bytes(element_type: Attribute) -> float:
    """Bytes an element takes on a device: f32 4, i1 1 (one byte), i4 0.5, complex<f32> 8.

    Raises `PartirError` for types that have no size of their own (tokens, tuples, …).
    """
    if row := _FLOAT_ROWS.get(element_type):
        return 4.0 if row[0] == "tf32" else row[2] / 8
    if facts := integer_facts(element_type):
        width = facts[0]
        return 1.0 if width == 1 else width / 8
    if isinstance(element_type, IndexType):
        return 8.0
    if (real := complex_part(element_type)) is not None:
        return 2 * element_bytes(real)
    raise PartirError(f"element type has no size, got: {element_type}")


def type_text(element_type: Attribute) -> str:
    """How MLIR spells an element type: 'f32', 'bf16', 'i1', 'ui8', 'complex<f32>'."""
    if row := _FLOAT_ROWS.get(element_type):
        return row[0]
    return str(element_type)
