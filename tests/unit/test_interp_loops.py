"""The loop form: every action, several ops in a loop, uneven tiles, partial results."""

# ruff: noqa: E501 (a line of MLIR is easier to read whole)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partir.interp import run
from partir.interp.loops import identity
from partir.partir_dialect.reader import read_module

Array = np.ndarray[Any, np.dtype[Any]]


def evaluate(arguments: str, results: str, body: str, *inputs: Array) -> list[Array]:
    text = f"module {{\nfunc.func @main({arguments}) -> {results} {{\n{body}\n}}\n}}"
    module = read_module(text)
    module.verify()
    return run(module, inputs)


def normal(*shape: int) -> Array:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def test_the_nest_of_a_matmul() -> None:
    """The example of the design: batch tiles the rows, model sums over the contraction."""
    x, w = normal(256, 8), normal(8, 16)
    body = """  %y = partir.loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) {
    %xs = partir.slice 0 %x[%i] : tensor<64x8xf32>
    %r = partir.loop "model" [#partir.sum] (%j : !partir.range<2>) {
      %xk = partir.slice 1 %xs[%j] : tensor<64x4xf32>
      %wk = partir.slice 0 %w[%j] : tensor<4x16xf32>
      %d = stablehlo.dot_general %xk, %wk, contracting_dims = [1] x [0] : (tensor<64x4xf32>, tensor<4x16xf32>) -> tensor<64x16xf32>
      partir.yield %d : tensor<64x16xf32>
    } : tensor<64x16xf32>
    partir.yield %r : tensor<64x16xf32>
  } : tensor<256x16xf32>
  return %y : tensor<256x16xf32>"""
    (y,) = evaluate("%x: tensor<256x8xf32>, %w: tensor<8x16xf32>", "tensor<256x16xf32>", body, x, w)
    np.testing.assert_allclose(y, x @ w, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("action", "function", "dtype"),
    [
        ("sum", np.sum, np.float32),
        ("max", np.max, np.float32),
        ("min", np.min, np.int32),
        ("mul", np.prod, np.int32),
        ("and", np.bitwise_and.reduce, np.int32),
        ("or", np.bitwise_or.reduce, np.int32),
    ],
)
def test_partial_results_are_combined(action: str, function: Any, dtype: Any) -> None:
    element = "f32" if dtype is np.float32 else "i32"
    x = (normal(4, 3) * 10).astype(dtype)
    body = f"""  %y = partir.loop "a" [#partir.{action}] (%i : !partir.range<4>) {{
    %s = partir.slice 0 %x[%i] : tensor<1x3x{element}>
    partir.yield %s : tensor<1x3x{element}>
  }} : tensor<1x3x{element}>
  return %y : tensor<1x3x{element}>"""
    (y,) = evaluate(f"%x: tensor<4x3x{element}>", f"tensor<1x3x{element}>", body, x)
    np.testing.assert_allclose(y[0], function(x, axis=0), rtol=1e-5)


def test_several_results_and_ops_in_one_loop() -> None:
    x, w = normal(6, 4), normal(4)
    body = """  %y:3 = partir.loop "a" [#partir.tile<1>, #partir.any, #partir.sum] (%i : !partir.range<2>) {
    %s = partir.slice 1 %x[%i] : tensor<6x2xf32>
    %t = stablehlo.tanh %s : tensor<6x2xf32>
    %u = stablehlo.negate %w : tensor<4xf32>
    %v = partir.slice 0 %w[%i] : tensor<2xf32>
    %d = stablehlo.dot_general %t, %v, contracting_dims = [1] x [0] : (tensor<6x2xf32>, tensor<2xf32>) -> tensor<6xf32>
    partir.yield %t, %u, %d : tensor<6x2xf32>, tensor<4xf32>, tensor<6xf32>
  } : tensor<6x4xf32>, tensor<4xf32>, tensor<6xf32>
  return %y#0, %y#1, %y#2 : tensor<6x4xf32>, tensor<4xf32>, tensor<6xf32>"""
    types = "(tensor<6x4xf32>, tensor<4xf32>, tensor<6xf32>)"
    t, u, d = evaluate("%x: tensor<6x4xf32>, %w: tensor<4xf32>", types, body, x, w)
    np.testing.assert_allclose(t, np.tanh(x), rtol=1e-6)
    np.testing.assert_array_equal(u, -w)
    np.testing.assert_allclose(d, np.tanh(x) @ w, rtol=1e-5)


@pytest.mark.parametrize("size", [7, 9, 4, 2])
def test_uneven_tiles_lose_their_padding(size: int) -> None:
    """ceil(size / 4) rows an iteration; the last tiles may be short or empty."""
    tile = -(-size // 4)
    x = normal(size, 2)
    body = f"""  %y = partir.loop "a" [#partir.tile<0>] (%i : !partir.range<4>) {{
    %s = partir.slice 0 %x[%i] : tensor<{tile}x2xf32>
    %t = stablehlo.exponential %s : tensor<{tile}x2xf32>
    partir.yield %t : tensor<{tile}x2xf32>
  }} : tensor<{size}x2xf32>
  return %y : tensor<{size}x2xf32>"""
    (y,) = evaluate(f"%x: tensor<{size}x2xf32>", f"tensor<{size}x2xf32>", body, x)
    np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)


def test_a_start_counts_once_and_a_tile_is_embedded_among_identities() -> None:
    x, start = normal(7), np.array(3.5, np.float32)
    body = """  %y:2 = partir.loop "a" [#partir.sum, #partir.max] (%i : !partir.range<3>) {
    %s = partir.slice 0 %x[%i] : tensor<3xf32>
    %o = partir.once "add" %c[%i] : tensor<f32>
    %e = partir.embed "max" 0 %s[%i] : tensor<7xf32>
    %r = stablehlo.reduce(%s init: %o) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    partir.yield %r, %e : tensor<f32>, tensor<7xf32>
  } : tensor<f32>, tensor<7xf32>
  return %y#0, %y#1 : tensor<f32>, tensor<7xf32>"""
    total, whole = evaluate(
        "%x: tensor<7xf32>, %c: tensor<f32>", "(tensor<f32>, tensor<7xf32>)", body, x, start
    )
    np.testing.assert_allclose(total, 3.5 + x.sum(), rtol=1e-5)
    np.testing.assert_array_equal(whole, x)


def test_marks_are_identities() -> None:
    x = normal(3)
    body = """  %0 = partir.replicate ["a"] %x : tensor<3xf32>
  %1 = partir.stop ["a"] %0 : tensor<3xf32>
  return %1 : tensor<3xf32>"""
    (y,) = evaluate("%x: tensor<3xf32>", "tensor<3xf32>", body, x)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint16, np.int64, np.bool_])
@pytest.mark.parametrize("reducer", ["add", "mul", "max", "min", "and", "or"])
def test_identities_leave_everything_unchanged(reducer: str, dtype: Any) -> None:
    if reducer in ("and", "or") and dtype is np.float32:
        return
    functions = {
        "add": np.add,
        "mul": np.multiply,
        "max": np.maximum,
        "min": np.minimum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
    }
    if dtype is np.float32:
        values = np.array([-np.inf, -3, 0, 2.5, np.inf], dtype)
    elif dtype is np.bool_:
        values = np.array([False, True])
    else:
        info = np.iinfo(dtype)
        values = np.array([info.min, 0, 1, 77, info.max], dtype)
    neutral = identity(reducer, np.dtype(dtype))
    assert neutral.dtype == dtype
    np.testing.assert_array_equal(functions[reducer](values, neutral), values)
