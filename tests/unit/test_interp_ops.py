"""Ops that no outside oracle runs as they are, and the corners of regions: against NumPy."""

# ruff: noqa: E501 (a line of MLIR is easier to read whole)

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from partir.interp import InterpreterError, has_meaning, run, run_spmd
from partir.interp import numbers as n
from partir.partir_dialect import chlo, partir, sdy, stablehlo
from partir.partir_dialect.mesh import Mesh
from partir.partir_dialect.reader import read_module

Array = np.ndarray[Any, np.dtype[Any]]

# Ops that are no computation of their own, or whose numbers nothing defines.
WITHOUT_MEANING = {
    "stablehlo.return",
    "chlo._asin_acos_kernel",
    "sdy.mesh",
    "sdy.return",
    "sdy.all_reduce",
    "sdy.reduce_scatter",
    "sdy.replicated_to_unreduced",
    "sdy.sharded_to_unreduced",
    "partir.yield",
}


def test_every_op_of_the_dialects_has_a_meaning() -> None:
    dialects = (stablehlo.Stablehlo, chlo.Chlo, sdy.Sdy, partir.Partir)
    names = {op.name for dialect in dialects for op in dialect.operations}
    assert {name for name in names if not has_meaning(name)} == WITHOUT_MEANING


def evaluate(
    arguments: str, results: str, body: str, *inputs: Array, extra: str = ""
) -> list[Array]:
    return run(
        read_module(
            f"module {{\nfunc.func @main({arguments}) -> {results} {{\n{body}\n}}\n{extra}\n}}"
        ),
        inputs,
    )


def normal(*shape: int) -> Array:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


# ------------------------------------------------------------------------- regions


def test_a_body_may_use_values_from_outside_that_differ_between_devices() -> None:
    text = """func.func @main(%x: tensor<4xf32>, %scale: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.multiply %b, %scale : tensor<f32>
    %t = stablehlo.add %a, %s : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}"""
    x = normal(4)
    inputs = [[x, np.array(d + 1, np.float32)] for d in range(2)]
    outputs = run_spmd(read_module(text), Mesh(a=2), inputs)
    for device, (total,) in enumerate(outputs):
        np.testing.assert_allclose(total, (device + 1) * x.sum(), rtol=1e-5)


def test_a_body_with_control_flow_is_run_element_by_element() -> None:
    body = """  %r = "stablehlo.map"(%x) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%a: tensor<f32>):
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %p = stablehlo.compare LT, %a, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %s = "stablehlo.if"(%p) ({
      %n = stablehlo.negate %a : tensor<f32>
      stablehlo.return %n : tensor<f32>
    }, {
      stablehlo.return %a : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>"""
    x = normal(3, 4)
    (result,) = evaluate("%x: tensor<3x4xf32>", "tensor<3x4xf32>", body, x)
    np.testing.assert_array_equal(result, np.abs(x))


def test_a_body_may_call_a_function() -> None:
    body = """  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %r = "stablehlo.reduce"(%x, %low) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = func.call @larger(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<3x90xf32>, tensor<f32>) -> tensor<3xf32>
  return %r : tensor<3xf32>"""
    larger = """func.func private @larger(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %p = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %s = stablehlo.select %p, %a, %b : tensor<i1>, tensor<f32>
  return %s : tensor<f32>
}"""
    x = normal(3, 90)
    (result,) = evaluate("%x: tensor<3x90xf32>", "tensor<3xf32>", body, x, extra=larger)
    np.testing.assert_array_equal(result, x.max(axis=1))


def test_a_scatter_of_any_body_combines_in_index_order() -> None:
    """x → 2x + u is neither commutative nor associative: the order shows."""
    body = """  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
       scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %d = stablehlo.add %a, %a : tensor<f32>
    %s = stablehlo.add %d, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<3xf32>, tensor<5x1xi32>, tensor<5xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>"""
    x, u = np.array([1, 2, 3], np.float32), np.array([10, 20, 30, 40, 50], np.float32)
    index = np.array([0, 2, 0, 7, 0], np.int32)
    want = x.copy()
    for i, update in zip(index, u, strict=True):
        if i < 3:
            want[i] = 2 * want[i] + update
    arguments = "%x: tensor<3xf32>, %i: tensor<5x1xi32>, %u: tensor<5xf32>"
    (result,) = evaluate(arguments, "tensor<3xf32>", body, x, index.reshape(5, 1), u)
    np.testing.assert_array_equal(result, want)


def test_a_scatter_skips_a_window_that_is_partly_outside() -> None:
    """As XLA does it; the specification would write the part that is inside."""
    body = """  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
       scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<4xf32>, tensor<2x1xi32>, tensor<2x2xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>"""
    x, u = np.zeros(4, np.float32), np.array([[1, 2], [3, 4]], np.float32)
    arguments = "%x: tensor<4xf32>, %i: tensor<2x1xi32>, %u: tensor<2x2xf32>"
    (result,) = evaluate(arguments, "tensor<4xf32>", body, x, np.array([[3], [1]], np.int32), u)
    np.testing.assert_array_equal(result, [0, 3, 4, 0])


def test_tuples_tokens_futures_and_named_computations() -> None:
    body = """  %t = stablehlo.tuple %x, %y : tuple<tensor<2xf32>, tensor<3xf32>>
  %0 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<2xf32>, tensor<3xf32>>) -> tensor<3xf32>
  %k = stablehlo.create_token : !stablehlo.token
  %m = stablehlo.after_all %k, %k : !stablehlo.token
  %f = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<2xf32>):
    %s = "stablehlo.slice"(%a) <{start_indices = array<i64: 1>, limit_indices = array<i64: 2>, strides = array<i64: 1>}> : (tensor<2xf32>) -> tensor<1xf32>
    stablehlo.return %s : tensor<1xf32>
  }) : (tensor<2xf32>) -> !stablehlo.future<tensor<1xf32>>
  %1 = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<1xf32>>) -> tensor<1xf32>
  %2 = sdy.named_computation<"double">(%0) (%a: tensor<3xf32>) {
    %d = stablehlo.add %a, %a : tensor<3xf32>
    sdy.return %d : tensor<3xf32>
  } : (tensor<3xf32>) -> tensor<3xf32>
  return %1, %2 : tensor<1xf32>, tensor<3xf32>"""
    x, y = normal(2), normal(3)
    one, two = evaluate(
        "%x: tensor<2xf32>, %y: tensor<3xf32>", "(tensor<1xf32>, tensor<3xf32>)", body, x, y
    )
    np.testing.assert_array_equal(one, x[1:])
    np.testing.assert_array_equal(two, 2 * y)


def test_slices_whose_limits_are_operands() -> None:
    body = """  %r = stablehlo.real_dynamic_slice %x, %a, %b, %c : (tensor<4x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x1xf32>
  return %r : tensor<2x1xf32>"""
    x = normal(4, 3)
    arguments = "%x: tensor<4x3xf32>, %a: tensor<2xi64>, %b: tensor<2xi64>, %c: tensor<2xi64>"
    limits = (np.array([0, 1]), np.array([4, 3]), np.array([2, 2]))
    (result,) = evaluate(arguments, "tensor<2x1xf32>", body, x, *limits)
    np.testing.assert_array_equal(result, x[0:4:2, 1:3:2])


def test_einsum_of_one_operand_and_sizes_that_are_set() -> None:
    body = """  %0 = "stablehlo.unary_einsum"(%x) <{einsum_config = "ij->j"}> : (tensor<4x3xf32>) -> tensor<3xf32>
  %1 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<4x3xf32>, tensor<i32>) -> tensor<4x3xf32>
  return %0, %1 : tensor<3xf32>, tensor<4x3xf32>"""
    x, results = normal(4, 3), "(tensor<3xf32>, tensor<4x3xf32>)"
    arguments = "%x: tensor<4x3xf32>, %n: tensor<i32>"
    total, same = evaluate(arguments, results, body, x, np.array(4, np.int32))
    np.testing.assert_allclose(total, x.sum(axis=0), rtol=1e-5)
    np.testing.assert_array_equal(same, x)
    with pytest.raises(InterpreterError, match="dynamic size is not supported, got: 2"):
        evaluate(arguments, results, body, x, np.array(2, np.int32))


def test_broadcasting_along_named_dimensions() -> None:
    body = """  %r = chlo.broadcast_subtract %x, %y {broadcast_dimensions = array<i64: 0>} : (tensor<4x3xf32>, tensor<4xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>"""
    x, y = normal(4, 3), normal(4)
    (result,) = evaluate("%x: tensor<4x3xf32>, %y: tensor<4xf32>", "tensor<4x3xf32>", body, x, y)
    np.testing.assert_array_equal(result, x - y[:, None])


# ------------------------------------------------------------------------- ragged dots


def ragged(numbers: str, a: Array, b: Array, sizes: Array, result: str) -> Array:
    shapes = ["x".join(map(str, x.shape)) for x in (a, b, sizes)]
    types = [f"tensor<{shapes[0]}xf32>", f"tensor<{shapes[1]}xf32>", f"tensor<{shapes[2]}xi32>"]
    body = (
        f'  %r = "chlo.ragged_dot"(%a, %b, %s) <{{ragged_dot_dimension_numbers = #chlo.ragged_dot<{numbers}>}}> '
        f": ({', '.join(types)}) -> tensor<{result}xf32>\n  return %r : tensor<{result}xf32>"
    )
    arguments = f"%a: {types[0]}, %b: {types[1]}, %s: {types[2]}"
    (out,) = evaluate(arguments, f"tensor<{result}xf32>", body, a, b, sizes.astype(np.int32))
    return out


def spans(sizes: Array) -> list[slice]:
    ends = np.cumsum(sizes)
    return [slice(int(e - s), int(e)) for s, e in zip(sizes, ends, strict=True)]


def test_ragged_rows() -> None:
    a, b, sizes = normal(10, 4), normal(3, 4, 5), np.array([3, 0, 5])
    want = np.zeros((10, 5), np.float32)
    for group, rows in enumerate(spans(sizes)):
        want[rows] = a[rows] @ b[group]
    numbers = "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]"
    np.testing.assert_allclose(ragged(numbers, a, b, sizes, "10x5"), want, rtol=1e-5, atol=1e-5)


def test_ragged_contraction() -> None:
    a, b, sizes = normal(10, 4), normal(10, 5), np.array([3, 2, 5])
    want = np.stack([a[rows].T @ b[rows] for rows in spans(sizes)])
    numbers = "lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [0]"
    np.testing.assert_allclose(ragged(numbers, a, b, sizes, "3x4x5"), want, rtol=1e-5, atol=1e-5)


def test_ragged_rows_of_a_batch_with_sizes_of_its_own() -> None:
    a, b, sizes = normal(2, 7, 4), normal(2, 3, 4, 5), np.array([[3, 0, 4], [1, 2, 2]])
    want = np.zeros((2, 7, 5), np.float32)
    for k in range(2):
        for group, rows in enumerate(spans(sizes[k])):
            want[k, rows] = a[k, rows] @ b[k, group]
    numbers = (
        "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], "
        "rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [1], rhs_group_dimensions = [1]"
    )
    np.testing.assert_allclose(ragged(numbers, a, b, sizes, "2x7x5"), want, rtol=1e-5, atol=1e-5)


# ------------------------------------------------------------------------- LAPACK and other calls


def call(target: str, results: str, config: str, *inputs: Array) -> list[Array]:
    names = [f"%a{k}" for k in range(len(inputs))]
    kinds = {"float32": "f32", "float64": "f64", "int32": "i32"}
    types = [f"tensor<{''.join(f'{s}x' for s in x.shape)}{kinds[x.dtype.name]}>" for x in inputs]
    count = results.count("tensor")
    outs = ", ".join(f"%r#{k}" for k in range(count)) if count > 1 else "%r"
    body = (
        f"  %r{f':{count}' if count > 1 else ''} = stablehlo.custom_call @{target}({', '.join(names)}) "
        f"{{mhlo.backend_config = {{{config}}}}} : ({', '.join(types)}) -> {f'({results})' if count > 1 else results}\n"
        f"  return {outs} : {results}"
    )
    arguments = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, types, strict=True))
    return evaluate(arguments, f"({results})" if count > 1 else results, body, *inputs)


def test_lu_with_pivots_and_their_permutation() -> None:
    a = normal(2, 5, 4)
    packed, pivots, info = call(
        "lapack_sgetrf_ffi", "tensor<2x5x4xf32>, tensor<2x4xi32>, tensor<2xi32>", "", a
    )
    (order,) = call("LuPivotsToPermutation", "tensor<2x5xi32>", "", (pivots - 1).astype(np.int32))
    assert not info.any()
    for k in range(2):
        lower, upper = np.tril(packed[k], -1) + np.eye(5, 4), np.triu(packed[k])[:4]
        np.testing.assert_allclose(lower @ upper, a[k][order[k]], rtol=1e-4, atol=1e-5)
        assert np.abs(np.tril(packed[k], -1)).max() <= 1


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigenvectors_read_one_triangle(uplo: str) -> None:
    a = normal(3, 4, 4).astype(np.float64)
    triangle = np.tril(a) if uplo == "L" else np.triu(a)
    whole = triangle + np.swapaxes(triangle, -1, -2) * (1 - np.eye(4))
    results = "tensor<3x4x4xf64>, tensor<3x4xf64>, tensor<3xi32>"
    vectors, values, _ = call("lapack_dsyevd_ffi", results, f"uplo = {ord(uplo)} : ui8", a)
    np.testing.assert_allclose(whole @ vectors, vectors * values[:, None, :], atol=1e-10)


def test_singular_values() -> None:
    a = normal(4, 3)
    results = "tensor<4x3xf32>, tensor<3xf32>, tensor<4x3xf32>, tensor<3x3xf32>, tensor<i32>"
    _, s, u, v, _ = call("lapack_sgesdd_ffi", results, f"mode = {ord('S')} : ui8", a)
    np.testing.assert_allclose((u * s) @ v, a, rtol=1e-4, atol=1e-5)


def test_the_householder_product_is_orthogonal_and_gives_a_back() -> None:
    a = normal(6, 3)
    packed, tau = call("lapack_sgeqrf_ffi", "tensor<6x3xf32>, tensor<3xf32>", "", a)
    (q,) = call("lapack_sorgqr_ffi", "tensor<6x3xf32>", "", packed, tau)
    np.testing.assert_allclose(q.T @ q, np.eye(3), atol=1e-5)
    np.testing.assert_allclose(q @ np.triu(packed[:3]), a, rtol=1e-4, atol=1e-5)


def test_random_numbers_without_a_definition_and_host_communication_are_refused() -> None:
    body = """  %a = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.constant dense<4> : tensor<1xi64>
  %r = stablehlo.rng %a, %a, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  return %r : tensor<4xf32>"""
    with pytest.raises(InterpreterError, match=r"not defined.*in stablehlo\.rng"):
        evaluate("", "tensor<4xf32>", body)


# ------------------------------------------------------------------------- quantised values


def test_quantised_arithmetic_is_dequantise_op_quantise() -> None:
    per_tensor, per_row = (
        "!quant.uniform<i8:f32, 0.5:-20>",
        "!quant.uniform<u8<0:100>:f32:0, {0.25:10, 0.5}>",
    )
    body = f"""  %0 = stablehlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x{per_tensor}>
  %1 = stablehlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x{per_row}>
  %2 = stablehlo.multiply %0, %0 : tensor<2x3x{per_tensor}>
  %3 = stablehlo.bitcast_convert %2 : (tensor<2x3x{per_tensor}>) -> tensor<2x3xi8>
  %4 = stablehlo.bitcast_convert %1 : (tensor<2x3x{per_row}>) -> tensor<2x3xui8>
  %5 = stablehlo.uniform_dequantize %1 : (tensor<2x3x{per_row}>) -> tensor<2x3xf32>
  return %3, %4, %5 : tensor<2x3xi8>, tensor<2x3xui8>, tensor<2x3xf32>"""
    x = np.array([[0.3, -1.6, 99], [3.3, 80, -7]], np.float32)
    results = "(tensor<2x3xi8>, tensor<2x3xui8>, tensor<2x3xf32>)"
    squares, rows, back = evaluate("%x: tensor<2x3xf32>", results, body, x)
    halves = np.clip(np.rint(x / 0.5) - 20, -128, 127)
    numbers = (halves + 20) * 0.5
    np.testing.assert_array_equal(squares, np.clip(np.rint(numbers**2 / 0.5) - 20, -128, 127))
    scale, zero = np.array([[0.25], [0.5]]), np.array([[10], [0]])
    stored = np.clip(np.rint(x / scale) + zero, 0, 100)
    np.testing.assert_array_equal(rows, stored)
    np.testing.assert_allclose(back, (stored - zero) * scale)


# ------------------------------------------------------------------------- numbers


def test_narrow_integers_wrap_and_shift_by_their_own_width() -> None:
    int4 = np.dtype(ml_dtypes.int4)
    a = np.array([7, -8, -1, 3], np.int8).astype(int4)
    b = np.array([1, 1, 4, 2], np.int8).astype(int4)
    body = """  %0 = stablehlo.add %a, %b : tensor<4xi4>
  %1 = stablehlo.shift_left %a, %b : tensor<4xi4>
  %2 = stablehlo.shift_right_logical %a, %b : tensor<4xi4>
  %3 = stablehlo.count_leading_zeros %a : tensor<4xi4>
  %4 = stablehlo.popcnt %a : tensor<4xi4>
  return %0, %1, %2, %3, %4 : tensor<4xi4>, tensor<4xi4>, tensor<4xi4>, tensor<4xi4>, tensor<4xi4>"""
    results = f"({', '.join(['tensor<4xi4>'] * 5)})"
    found = [
        r.astype(np.int8).tolist()
        for r in evaluate("%a: tensor<4xi4>, %b: tensor<4xi4>", results, body, a, b)
    ]
    assert found == [[-8, -7, 3, 5], [-2, 0, 0, -4], [3, 4, 0, 0], [1, 0, 0, 2], [3, 1, 4, 2]]


@pytest.mark.parametrize(
    ("dtype", "bits", "integer", "float_", "wide"),
    [
        (np.bool_, 1, False, False, np.bool_),
        (np.int16, 16, True, False, np.int16),
        (ml_dtypes.uint4, 4, True, False, np.uint8),
        (ml_dtypes.int2, 2, True, False, np.int8),
        (ml_dtypes.bfloat16, 16, False, True, np.float32),
        (ml_dtypes.float8_e5m2, 8, False, True, np.float32),
        (ml_dtypes.float4_e2m1fn, 4, False, True, np.float32),
        (np.float16, 16, False, True, np.float32),
        (np.float64, 64, False, True, np.float64),
        (np.complex64, 64, False, False, np.complex64),
    ],
)
def test_what_a_dtype_is(dtype: Any, bits: int, integer: bool, float_: bool, wide: Any) -> None:
    found = np.dtype(dtype)
    assert (n.bits(found), n.is_integer(found), n.is_float(found)) == (bits, integer, float_)
    assert n.wide(found) == np.dtype(wide)
