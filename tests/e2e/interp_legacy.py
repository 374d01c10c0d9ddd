"""More programs for `test_interp_oracle.py`: dynamic shapes, older ops, CHLO's broadcasting, calls."""

# ruff: noqa: E501 (a line of MLIR is easier to read whole)

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Case = Any


def legacy(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    """Every case of this file."""
    for family in (dynamic, older, broadcasting, rest):
        yield from family(case, numbers)


def _simple(
    case: Callable[..., Case],
    name: str,
    expression: str,
    result: str,
    *inputs: Array,
    **settings: Any,
) -> Case:
    body = f"  %r = {expression} -> {result}\n  return %r : {result}"
    return case(name, body, result, *inputs, **settings)


def dynamic(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    """Shapes that are operands, with results of known shape."""

    def reference(name: str, expression: str, result: str, *inputs: Array) -> Case:
        return _simple(case, name, expression, result, *inputs, oracle="reference", tolerance=1e-6)

    x, value = numbers("dyn", (4, 3)), np.array(7, np.float32)
    shape = np.array([2, 4, 3], np.int64)
    yield reference(
        "dynamic_broadcast_in_dim",
        "stablehlo.dynamic_broadcast_in_dim %a, %b, dims = [1, 2] : ({A}, {B})",
        "tensor<2x4x3xf32>",
        x,
        shape,
    )
    body = "  %r = stablehlo.dynamic_iota %a, dim = 1 : ({A}) -> tensor<2x4x3xi32>\n  return %r : tensor<2x4x3xi32>"
    yield case("dynamic_iota", body, "tensor<2x4x3xi32>", shape, oracle="reference")
    yield reference(
        "dynamic_reshape",
        "stablehlo.dynamic_reshape %a, %b : ({A}, {B})",
        "tensor<2x6xf32>",
        x,
        np.array([2, 6]),
    )
    yield reference(
        "dynamic_pad",
        "stablehlo.dynamic_pad %a, %b, %c, %d, %e : ({A}, {B}, {C}, {D}, {E})",
        "tensor<6x6xf32>",
        x,
        value,
        np.array([1, -1]),
        np.array([1, 2]),
        np.array([0, 1]),
    )
    numbers_ = (
        "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
    )
    yield reference(
        "dynamic_gather",
        f'"stablehlo.dynamic_gather"(%a, %b, %c) <{{dimension_numbers = #stablehlo.gather<{numbers_}>, indices_are_sorted = false}}> : ({{A}}, {{B}}, {{C}})',
        "tensor<5x2xf32>",
        x,
        np.array([[0], [3], [9], [-1], [1]]),
        np.array([1, 2]),
    )
    image, kernel = numbers("dci", (1, 6, 6, 2)), numbers("dck", (3, 3, 2, 4))
    yield reference(
        "dynamic_conv",
        '"stablehlo.dynamic_conv"(%a, %b, %c) <{dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, '
        "feature_group_count = 1 : i64, batch_group_count = 1 : i64, window_strides = array<i64: 2, 1>}> : ({A}, {B}, {C})",
        "tensor<1x3x5x4xf32>",
        image,
        kernel,
        np.array([[1, 1], [0, 1]]),
    )
    body = "  %r = stablehlo.get_dimension_size %a, dim = 1 : ({A}) -> tensor<i32>\n  return %r : tensor<i32>"
    yield case("get_dimension_size", body, "tensor<i32>", x)


def older(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    """Ops that newer ones replace."""
    a, b, v = numbers("oa", (3, 4)), numbers("ob", (4, 5)), numbers("ov", (4,))
    yield _simple(
        case, "dot_matrices", "stablehlo.dot %a, %b : ({A}, {B})", "tensor<3x5xf32>", a, b
    )
    yield _simple(case, "dot_vector", "stablehlo.dot %a, %b : ({A}, {B})", "tensor<3xf32>", a, v)
    yield _simple(case, "dot_vectors", "stablehlo.dot %a, %a : ({A}, {A})", "tensor<f32>", v)
    yield _simple(
        case,
        "broadcast",
        "stablehlo.broadcast %a, sizes = [2, 1] : ({A})",
        "tensor<2x1x3x4xf32>",
        a,
    )
    batched = numbers("oe", (2, 4, 5))
    yield _simple(
        case,
        "einsum",
        '"stablehlo.einsum"(%a, %b) <{einsum_config = "ij,bjk->bik"}> : ({A}, {B})',
        "tensor<2x3x5xf32>",
        a,
        batched,
    )
    index = np.array([[2, 0], [1, 1]], np.int32)
    yield _simple(
        case,
        "torch_index_select",
        '"stablehlo.torch_index_select"(%a, %b) <{dim = 0 : i64, batch_dims = 0 : i64}> : ({A}, {B})',
        "tensor<2x2x4xf32>",
        a,
        index,
    )
    yield _simple(
        case,
        "torch_index_select_batched",
        '"stablehlo.torch_index_select"(%a, %b) <{dim = 1 : i64, batch_dims = 1 : i64}> : ({A}, {B})',
        "tensor<2x2x5xf32>",
        batched,
        index,
    )
    body = (
        "  %r:2 = stablehlo.optimization_barrier %a, %b : {A}, {B}\n  return %r#0, %r#1 : {A}, {B}"
    )
    yield case("optimization_barrier", body, "{A}, {B}", a, b, tolerance=0)


_ARITHMETIC = "add subtract multiply divide remainder power maximum minimum atan2".split()
_BITS = "and or xor shift_left shift_right_arithmetic shift_right_logical".split()


def broadcasting(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    """CHLO's binary ops: operands of other ranks, sizes of 1, dimensions named."""
    x, y = np.abs(numbers("bx", (2, 1, 3))) + 0.5, np.abs(numbers("by", (4, 3))) + 0.5
    result = "tensor<2x4x3xf32>"
    for name in _ARITHMETIC:
        yield _simple(
            case,
            f"broadcast_{name}",
            f"chlo.broadcast_{name} %a, %b : ({{A}}, {{B}})",
            result,
            x,
            y,
            tolerance=3e-6,
        )
    i, j = numbers("bi", (2, 1, 3), np.int32), np.abs(numbers("bj", (4, 3), np.int32)) % 7
    for name in _BITS:
        yield _simple(
            case,
            f"broadcast_{name}",
            f"chlo.broadcast_{name} %a, %b : ({{A}}, {{B}})",
            "tensor<2x4x3xi32>",
            i,
            j.astype(np.int32),
        )
    yield _simple(
        case,
        "broadcast_compare",
        "chlo.broadcast_compare %a, %b {comparison_direction = #chlo<comparison_direction GT>} : ({A}, {B})",
        "tensor<2x4x3xi1>",
        x,
        y,
    )
    yield _simple(
        case,
        "broadcast_select",
        '"chlo.broadcast_select"(%a, %b, %c) : ({A}, {B}, {C})',
        "tensor<2x4x3xf32>",
        np.array(True),
        x + 0 * y,
        numbers("bz", (2, 4, 3)),
    )
    yield _simple(
        case,
        "broadcast_complex",
        "chlo.broadcast_complex %a, %b : ({A}, {B})",
        "tensor<2x4x3xcomplex<f32>>",
        x,
        y,
    )
    for name in ("zeta", "polygamma"):
        first = (
            np.abs(x).astype(np.float64) + 1.5
            if name == "zeta"
            else np.array([[[0.0, 1, 2]], [[3, 1, 0]]])
        )
        yield _simple(
            case,
            f"broadcast_{name}",
            f"chlo.broadcast_{name} %a, %b : ({{A}}, {{B}})",
            "tensor<2x4x3xf64>",
            first,
            y.astype(np.float64),
            tolerance=1e-9,
        )
    yield _simple(
        case,
        "broadcast_next_after",
        "chlo.broadcast_next_after %a, %b : ({A}, {B})",
        result,
        x,
        y,
        tolerance=0,
    )


def rest(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    """What is left of CHLO, and calls."""
    z, x = numbers("cz", (5,), np.complex64), numbers("cx5", (5,))
    body = '  %r = "chlo.conj"(%a) : ({A}) -> {A}\n  return %r : {A}'
    yield case("conj", body, "{A}", z)
    body = '  %r = "chlo.constant_like"(%a) <{value = 2.5 : f32}> : ({A}) -> {A}\n  return %r : {A}'
    yield case("constant_like", body, "{A}", x)
    for kind in (np.int32, np.uint32, np.int64, np.uint64, np.int8):
        info = np.iinfo(kind)
        values = np.array([0, 1, 3, info.max, info.min, info.max // 3, 12], kind)
        body = '  %r = "chlo.mulhi"(%a, %b) : ({A}, {A}) -> {A}\n  return %r : {A}'
        yield case(f"mulhi_{np.dtype(kind).name}", body, "{A}", values, values[::-1].copy())
    body = """  %r = stablehlo.composite "mine.sine" %a {decomposition = @inner} : ({A}) -> {A}
  return %r : {A}"""
    inner = """func.func private @inner(%x: tensor<5xf32>) -> tensor<5xf32> {
  %y = stablehlo.sine %x : tensor<5xf32>
  return %y : tensor<5xf32>
}"""
    yield case("composite", body, "{A}", x, functions=inner)
