"""Types, attributes and constants that hypothesis makes, printed and read back."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import builtin as b
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from partir.partir_dialect.constants import from_numpy, is_splat, to_numpy
from partir.partir_dialect.dtypes import FLOAT_TYPES, element_type, numpy_dtype
from partir.partir_dialect.printer import print_module
from partir.partir_dialect.reader import read_module
from partir.partir_dialect.reader.dense import narrow

FEW = settings(max_examples=80, deadline=None)

# --- types and attributes -----------------------------------------------------------------------

integers = st.builds(
    b.IntegerType,
    st.sampled_from((1, 2, 4, 7, 8, 16, 32, 64, 128)),
    st.sampled_from(list(b.Signedness)),
)
floats = st.sampled_from(list(FLOAT_TYPES.values()))
complexes = st.builds(b.ComplexType, st.sampled_from((b.f32, b.f64)))
elements = st.one_of(integers, floats, complexes, st.just(b.IndexType()))
sizes = st.lists(st.one_of(st.just(-1), st.integers(0, 10**6)), max_size=5)
tensors = st.one_of(
    st.builds(b.TensorType, elements, sizes), st.builds(b.UnrankedTensorType, elements)
)
vectors = st.builds(
    b.VectorType, st.one_of(integers, floats), st.lists(st.integers(1, 9), max_size=3)
)


def _composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, max_size=3)
    return st.one_of(
        st.builds(lambda types: b.TupleType(b.ArrayAttr(types)), some),
        st.builds(b.FunctionType.from_lists, some, some),
    )


types = st.recursive(st.one_of(elements, tensors, vectors), _composed, max_leaves=6)

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_$.]{0,8}", fullmatch=True).filter(
    lambda name: not name.endswith(".") and ".." not in name
)
i64s = st.integers(-(2**63), 2**63 - 1)
scalars = st.one_of(
    st.builds(b.StringAttr, texts),
    st.builds(b.IntegerAttr, i64s, st.just(b.i64)),
    st.builds(b.IntegerAttr, st.integers(-128, 127), st.just(b.IntegerType(8))),
    st.builds(b.FloatAttr, st.floats(width=64, allow_nan=False), st.just(b.f64)),
    st.builds(b.FloatAttr, st.floats(width=32, allow_nan=False), st.just(b.f32)),
    st.builds(b.SymbolRefAttr, texts.filter(bool), st.lists(names, max_size=2)),
    st.just(b.UnitAttr()),
    st.builds(lambda values: b.DenseArrayBase.from_list(b.i64, values), st.lists(i64s, max_size=4)),
    types,
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(b.ArrayAttr, st.lists(inner, max_size=3)),
        st.builds(b.DictionaryAttr, st.dictionaries(st.one_of(names, texts), inner, max_size=3)),
    )


attributes = st.recursive(scalars, _nested, max_leaves=8)


def back(attribute: Attribute) -> Attribute:
    """The attribute after a round trip through a module's text."""
    module = ModuleOp([])
    module.attributes["x"] = attribute
    generic, pretty = (
        read_module(print_module(module, pretty=pretty)).attributes["x"] for pretty in (False, True)
    )
    assert generic == pretty
    return generic


@FEW
@given(attributes)
def test_attributes_read_back(attribute: Attribute) -> None:
    assert back(attribute) == attribute


@FEW
@given(types)
def test_types_read_back(type_: Attribute) -> None:
    assert back(type_) == type_


# --- constants ----------------------------------------------------------------------------------

DTYPES = sorted(
    {numpy_dtype(t) for name, t in FLOAT_TYPES.items() if name != "tf32"}
    | {np.dtype(name) for name in ("bool", "int8", "int32", "uint8", "uint64", "complex64")}
    | {numpy_dtype(b.IntegerType(4)), numpy_dtype(b.IntegerType(4, b.Signedness.UNSIGNED))},
    key=str,
)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray[Any, np.dtype[Any]]:
    """An array of any element type whose bits are arbitrary, NaN payloads among them."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
    count = int(np.prod(shape, dtype=int))
    if draw(st.booleans()):
        shape, count = (150,), 150  # long enough to be written as one hexadecimal string
    raw = np.frombuffer(draw(st.binary(min_size=count * 8, max_size=count * 8)), np.uint64)
    if draw(st.booleans()):
        raw = np.full_like(raw, draw(st.integers(0, 2**64 - 1)))
    bits = _bits(dtype)
    masked = raw & np.uint64((1 << bits) - 1)
    if dtype.kind == "c":
        return raw.view(dtype).reshape(shape)
    small = masked.astype(f"u{dtype.itemsize}")
    if dtype.name == "int4":
        small = np.where(small > 7, small | 0xF0, small).astype(np.uint8)
    return small.view(dtype).reshape(shape)


def _bits(dtype: np.dtype[Any]) -> int:
    named = {"bool": 1, "int4": 4, "uint4": 4}
    if dtype.name.startswith(("float4", "float6")):
        return int(dtype.name[5])
    return named.get(dtype.name, 8 * dtype.itemsize)


@settings(max_examples=150, deadline=None)
@given(arrays())
def test_constants_read_back_bit_by_bit(array: np.ndarray[Any, np.dtype[Any]]) -> None:
    constant: Any = back(from_numpy(array))
    assert constant.type == b.TensorType(element_type(array.dtype), array.shape)
    got = to_numpy(constant)
    assert got.dtype == array.dtype
    assert got.shape == array.shape
    assert got.tobytes() == array.tobytes()
    flat = array.reshape(-1)
    equal = flat.size > 0 and flat.tobytes() == flat[:1].tobytes() * flat.size
    assert is_splat(from_numpy(array)) == equal


@FEW
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
def test_narrow_rounds_to_nearest_even(values: list[float]) -> None:
    """bf16 by exact arithmetic: the nearest of the neighbours, ties to the even one."""
    from fractions import Fraction

    wide = np.array(values, np.float64)
    got = narrow(wide, numpy_dtype(FLOAT_TYPES["bf16"]))
    limit = float.fromhex("0x1.ffp127")  # from the middle of the largest and the next: infinite
    for value, result in zip(values, got, strict=True):
        if abs(value) >= limit:
            assert np.isinf(np.float32(result))
            continue
        word = int(np.array(result).view(np.uint16))
        error = abs(Fraction(float(result)) - Fraction(value))
        for other in (word - 1, word + 1):
            if not 0 <= other <= 0xFFFF or other & 0x7F80 == 0x7F80:
                continue
            near = float(np.array(other, np.uint16).view(got.dtype))
            distance = abs(Fraction(near) - Fraction(value))
            assert error < distance or (error == distance and word % 2 == 0) or near == result
