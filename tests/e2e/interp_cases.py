"""The programs that `test_interp_oracle.py` compares: one `main` each, named, with inputs.

A case is written once as a body over named arguments; `case` wraps it. Inputs are arrays given
here, so that the interesting values (NaN, the smallest integer, starts out of range) are really
there.
"""

# ruff: noqa: E501 (a line of MLIR is easier to read whole)

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

TYPES: dict[str, Any] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "i4": ml_dtypes.int4,
    "ui4": ml_dtypes.uint4,
    "i1": np.bool_,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
    **{f"i{8 * n}": f"i{n}" for n in (1, 2, 4, 8)},
    **{f"ui{8 * n}": f"u{n}" for n in (1, 2, 4, 8)},
}
_NAMES = {np.dtype(dtype): name for name, dtype in TYPES.items()}


@dataclass(frozen=True)
class Case:
    """A program, its inputs, who knows the answer, and how close (relative to the largest element)."""

    name: str
    text: str
    inputs: tuple[Array, ...]
    oracle: str = "xla"
    tolerance: float = 1e-6


def tensor(array: Array) -> str:
    """`tensor<2x3xf32>`."""
    shape = "".join(f"{size}x" for size in array.shape)
    return f"tensor<{shape}{_NAMES[array.dtype]}>"


def case(
    name: str,
    body: str,
    results: str,
    *inputs: Array,
    oracle: str = "xla",
    tolerance: float = 1e-6,
    functions: str = "",
) -> Case:
    """`body` uses %a, %b, … for the inputs and {A}, {B}, … for their types, and defines what
    `return` gives; `results` are the types of that."""
    letters = "abcdefgh"[: len(inputs)]
    types = {letter.upper(): tensor(array) for letter, array in zip(letters, inputs, strict=True)}
    for letter, type_ in types.items():
        body = body.replace("{" + letter + "}", type_)
        results = results.replace("{" + letter + "}", type_)
    arguments = ", ".join(f"%{k}: {types[k.upper()]}" for k in letters)
    listed = f"({results})" if "," in results else results
    text = f"func.func @main({arguments}) -> {listed} {{\n{body}\n}}\n{functions}"
    return Case(name, text, inputs, oracle, tolerance)


def numbers(name: str, shape: Sequence[int], dtype: Any = np.float32) -> Array:
    """Normal numbers of a dtype, different for each name."""
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        real, imaginary = generator.standard_normal((2, *shape))
        return (real + 1j * imaginary).astype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        low = 0 if dtype.kind == "u" else -100
        return generator.integers(low, 100, shape).astype(dtype)
    return generator.standard_normal(shape).astype(np.float32).astype(dtype)


# ------------------------------------------------------------------------- elementwise

_SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 1e-6, 20.0, np.inf, -np.inf]
_FLOATS = [*_SPECIAL, np.nan]
_UNARY_FLOAT = (
    "abs negate sign cbrt ceil floor round_nearest_even round_nearest_afz cosine sine tan tanh "
    "exponential exponential_minus_one log log_plus_one logistic sqrt rsqrt"
).split()
_UNARY_COMPLEX = "negate sign cosine sine tanh exponential log sqrt rsqrt logistic".split()
_UNARY_INTEGER = "abs negate sign not popcnt count_leading_zeros".split()
_BINARY_FLOAT = "add subtract multiply divide remainder power maximum minimum atan2".split()
_BINARY_INTEGER = (
    "add subtract multiply divide remainder power maximum minimum and or xor shift_left "
    "shift_right_arithmetic shift_right_logical"
).split()
_CHLO_UNARY = (
    "acos acosh asin asinh atan atanh cosh sinh tan erf erfc erf_inv lgamma digamma "
    "bessel_i1e square"
).split()


def _integers(dtype: Any) -> tuple[Array, Array]:
    info = np.iinfo(dtype)
    values = [0, 1, 2, 3, 7, 31, 100, int(info.max), int(info.min)]
    if info.min < 0:
        values += [-1, -2, -5]
    grid = np.array([(a, b) for a in values for b in values], object)
    return grid[:, 0].astype(dtype), grid[:, 1].astype(dtype)


def _unary(name: str, x: Array, tolerance: float, dialect: str = "stablehlo") -> Case:
    body = f'  %r = "{dialect}.{name}"(%a) : ({{A}}) -> {{A}}\n  return %r : {{A}}'
    prefix = "" if dialect == "stablehlo" else f"{dialect}_"
    return case(f"{prefix}{name}_{_NAMES[x.dtype]}", body, "{A}", x, tolerance=tolerance)


def _binary(name: str, x: Array, y: Array, tolerance: float, oracle: str = "xla") -> Case:
    body = f"  %r = stablehlo.{name} %a, %b : {{A}}\n  return %r : {{A}}"
    return case(f"{name}_{_NAMES[x.dtype]}", body, "{A}", x, y, tolerance=tolerance, oracle=oracle)


def elementwise() -> Iterator[Case]:
    """Every elementwise op on special values."""
    for kind, tolerance in (("f32", 3e-6), ("f64", 1e-12), ("bf16", 1e-2), ("f16", 2e-3)):
        x = np.array(_FLOATS, np.float32).astype(TYPES[kind])
        for name in _UNARY_FLOAT:
            if kind in ("f32", "f64") or name in ("tanh", "sign", "rsqrt", "floor", "logistic"):
                yield _unary(name, x, tolerance)
        a = np.repeat(x, len(x))
        b = np.tile(x, len(x))
        for name in _BINARY_FLOAT:
            if kind in ("f32", "f64") or name in ("divide", "maximum", "add"):
                yield _binary(name, a, b, tolerance)
    yield from _complex()
    yield from _whole_numbers()
    yield from _special_functions()


def _complex() -> Iterator[Case]:
    z = np.array([1 + 2j, -0.5 + 0.25j, 3 - 1j, -2 - 2j, 0.1j, 2], np.complex64)
    for name in _UNARY_COMPLEX:
        yield _unary(name, z, 1e-5)
    for name in ("add", "subtract", "multiply", "divide", "power"):
        yield _binary(name, z, z[::-1].copy(), 1e-4)


def _whole_numbers() -> Iterator[Case]:
    for kind in ("i8", "ui8", "i32", "ui32", "i64", "ui64"):
        a, b = _integers(TYPES[kind])
        for name in _UNARY_INTEGER:
            if not (kind.startswith("u") and name in ("abs", "negate", "sign")):
                yield _unary(name, a, 0)
        for name in _BINARY_INTEGER:
            # XLA looks at six bits of an integer exponent only: the specification decides
            yield _binary(name, a, b, 0, "reference" if name == "power" else "xla")
    for name in ("and", "or", "xor", "add", "multiply", "maximum", "minimum"):
        yield _binary(name, np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool), 0)
    yield _unary("not", np.array([0, 1], bool), 0)


def _special_functions() -> Iterator[Case]:
    points = np.array([-3.3, -1.2, -0.9, -0.3, 0.0, 1e-3, 0.2, 0.46, 0.6, 0.99, 1.0, 1.7, 4.2, 9.0])
    for kind, tolerance in (("f32", 3e-6), ("f64", 1e-11)):
        for name in _CHLO_UNARY:
            inside = np.clip(points, -0.99, 0.99) if name == "erf_inv" else points
            yield _unary(name, inside.astype(TYPES[kind]), tolerance, "chlo")
    for name in ("is_inf", "is_pos_inf", "is_neg_inf"):
        body = f'  %r = "chlo.{name}"(%a) : ({{A}}) -> tensor<16xi1>\n  return %r : tensor<16xi1>'
        yield case(name, body, "tensor<16xi1>", np.array(_FLOATS, np.float32))
    x, y = numbers("zeta", (5,), np.float64), numbers("zeta2", (5,), np.float64)
    for name, a, b in (
        ("zeta", 1.5 + np.abs(x), 0.3 + np.abs(y)),
        ("polygamma", np.array([0.0, 1, 2, 3, 5]), 0.3 + np.abs(y)),
        ("next_after", x, y),
    ):
        body = f'  %r = "chlo.{name}"(%a, %b) : ({{A}}, {{A}}) -> {{A}}\n  return %r : {{A}}'
        yield case(name, body, "{A}", a, b, tolerance=1e-10)


def conversions() -> Iterator[Case]:
    """Every pair of types, with values out of range."""
    floats = np.array(
        [0, -0.0, 1, -1, 1.5, -2.7, 127.9, 128, -200, 3e9, -3e9, 1e19, np.nan, np.inf, -np.inf]
    )
    small = np.array([0, -0.0, 1, -1, 1.5, -2.75, 0.3, 440, 17, -448])
    kinds = ["f64", "f32", "bf16", "f16", "i8", "ui8", "i32", "ui32", "i64", "ui64", "i1"]
    for source in kinds:
        x = (
            (floats if source.startswith(("f", "b")) else _integers(TYPES[source])[0])
            if source != "i1"
            else np.array([0, 1])
        )
        x = x.astype(TYPES[source])
        for target in kinds:
            if source != target:
                yield _convert(x, target)
    for target in ("f8E4M3FN", "f8E5M2"):
        yield _convert(small.astype(np.float32), target)
        yield _convert(small.astype(TYPES[target]), "f32")
    yield _convert(np.array([1 + 2j, -3.5j], np.complex64), "f32")
    yield _convert(np.array([1.5, -3.5], np.float32), "complex<f32>")
    yield _convert(np.array([3, -8, 7], np.int8).astype(TYPES["i4"]), "i32")
    yield _convert(np.array([3, -8, 7, 100, -9], np.int32), "i4")
    x = numbers("precision", (64,)) * 10 ** np.arange(-32, 32).astype(np.float32) / 3
    x[:4] = np.inf, np.nan, 0, -0.0
    for exponent, mantissa in ((5, 10), (8, 7), (4, 3), (8, 23), (2, 2), (5, 23)):
        body = (
            f"  %r = stablehlo.reduce_precision %a, format = e{exponent}m{mantissa} : {{A}}\n"
            "  return %r : {A}"
        )
        yield case(f"reduce_precision_e{exponent}m{mantissa}", body, "{A}", x, tolerance=0)


def _convert(x: Array, target: str) -> Case:
    result = (
        tensor(x.astype(np.float32)).replace("f32", target)
        if x.dtype.kind != "c"
        else (f"tensor<{len(x)}x{target}>")
    )
    body = f"  %r = stablehlo.convert %a : ({{A}}) -> {result}\n  return %r : {result}"
    return case(f"convert_{_NAMES[x.dtype]}_{target}", body, result, x, tolerance=1e-7)


def choices() -> Iterator[Case]:
    """Comparisons, selection, clamping, bit patterns, parts of complex numbers."""
    x = np.array(_FLOATS, np.float32)
    a, b = np.repeat(x, len(x)), np.tile(x, len(x))
    n = f"tensor<{len(a)}xi1>"
    for direction in ("EQ", "NE", "LT", "LE", "GT", "GE"):
        for kind in ("FLOAT", "TOTALORDER"):
            body = f"  %r = stablehlo.compare {direction}, %a, %b, {kind} : ({{A}}, {{B}}) -> {n}\n  return %r : {n}"
            yield case(f"compare_{direction}_{kind}", body, n, a, b)
        i, j = _integers(np.uint32)
        m = f"tensor<{len(i)}xi1>"
        body = f"  %r = stablehlo.compare {direction}, %a, %b, UNSIGNED : ({{A}}, {{B}}) -> {m}\n  return %r : {m}"
        yield case(f"compare_{direction}_UNSIGNED", body, m, i, j)
    p = numbers("p", (4, 3), bool)
    u, v = numbers("u", (4, 3)), numbers("v", (4, 3))
    select = "  %r = stablehlo.select %a, %b, %c : {A}, {B}\n  return %r : {B}"
    yield case("select", select, "{B}", p, u, v)
    yield case("select_scalar", select, "{B}", np.array(True), u, v)
    clamp = "  %r = stablehlo.clamp %a, %b, %c : ({A}, {B}, {C}) -> {B}\n  return %r : {B}"
    yield case(
        "clamp_scalar", clamp, "{B}", np.array(-0.3, np.float32), u, np.array(0.4, np.float32)
    )
    yield case(
        "clamp_inverted",
        clamp,
        "{B}",
        np.full((4, 3), 1, np.float32),
        u,
        np.zeros((4, 3), np.float32),
    )
    yield case(
        "is_finite",
        "  %r = stablehlo.is_finite %a : ({A}) -> tensor<16xi1>\n  return %r : tensor<16xi1>",
        "tensor<16xi1>",
        x,
    )
    z = numbers("z", (3, 2), np.complex64)
    parts = (
        "  %r = stablehlo.real %a : ({A}) -> tensor<3x2xf32>\n  %i = stablehlo.imag %a : ({A}) -> tensor<3x2xf32>\n"
        "  %m = stablehlo.abs %a : ({A}) -> tensor<3x2xf32>\n"
        "  %c = stablehlo.complex %i, %r : tensor<3x2xcomplex<f32>>\n"
        "  return %r, %i, %m, %c : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>, {A}"
    )
    yield case("complex_parts", parts, "tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>, {A}", z)
    for name, source, target in (
        ("same", u, "4x3xi32"),
        ("split", u, "4x3x4xui8"),
        ("merge", numbers("m", (3, 2), np.int16), "3xf32"),
        ("wide", numbers("w", (3, 2), np.uint32), "3xui64"),
        ("half", numbers("h", (4,), ml_dtypes.bfloat16), "4xui16"),
    ):
        body = f"  %r = stablehlo.bitcast_convert %a : ({{A}}) -> tensor<{target}>\n  return %r : tensor<{target}>"
        yield case(f"bitcast_{name}", body, f"tensor<{target}>", source)
    nibbles = "tensor<3x2xi4>"
    narrow = (
        f"  %r = stablehlo.bitcast_convert %a : ({{A}}) -> {nibbles}\n"
        f"  %s = stablehlo.convert %r : ({nibbles}) -> tensor<3x2xi32>\n"
        f"  %b = stablehlo.bitcast_convert %r : ({nibbles}) -> {{A}}\n  return %s, %b : tensor<3x2xi32>, {{A}}"
    )
    packed = np.array([0x21, 0xF8, 0x7E], np.uint8)
    yield case("bitcast_nibbles", narrow, "tensor<3x2xi32>, {A}", packed)
