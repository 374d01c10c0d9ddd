"""More programs for `test_interp_oracle.py`: ops with attributes, regions, indices and windows."""

# ruff: noqa: E501 (a line of MLIR is easier to read whole)

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Case = Any


def body(op: str, element: str = "f32") -> str:
    """A region of one op of two scalars."""
    t = f"tensor<{element}>"
    return (
        f"({{\n  ^bb0(%x: {t}, %y: {t}):\n    %s = stablehlo.{op} %x, %y : {t}\n"
        f"    stablehlo.return %s : {t}\n  }})"
    )


ARGMAX = """({
  ^bb0(%v: tensor<f32>, %i: tensor<i32>, %w: tensor<f32>, %j: tensor<i32>):
    %gt = stablehlo.compare GT, %v, %w, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %nan = stablehlo.compare NE, %v, %v, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %keep = stablehlo.or %gt, %nan : tensor<i1>
    %eq = stablehlo.compare EQ, %v, %w, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %lt = stablehlo.compare LT, %i, %j, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %tie = stablehlo.and %eq, %lt : tensor<i1>
    %first = stablehlo.or %keep, %tie : tensor<i1>
    %rv = stablehlo.select %keep, %v, %w : tensor<i1>, tensor<f32>
    %ri = stablehlo.select %first, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %rv, %ri : tensor<f32>, tensor<i32>
  })"""


def structures(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    """Every case of this file."""
    for family in (moves, contractions, convolutions, reductions, windows, indexing, orders):
        yield from family(case, numbers)
    for family in (solvers, control, randomness, normalisation):
        yield from family(case, numbers)


# ------------------------------------------------------------------------- data movement


def moves(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    x = numbers("moves", (3, 4, 5))
    for name, text, result in (
        (
            "broadcast_in_dim",
            "stablehlo.broadcast_in_dim %a, dims = [0, 2, 3] : ({A}) -> ",
            "3x2x4x5xf32",
        ),
        ("transpose", "stablehlo.transpose %a, dims = [2, 0, 1] : ({A}) -> ", "5x3x4xf32"),
        ("reshape", "stablehlo.reshape %a : ({A}) -> ", "6x10xf32"),
        ("slice", "stablehlo.slice %a [1:3, 0:4:2, 1:5:3] : ({A}) -> ", "2x2x2xf32"),
        ("reverse", "stablehlo.reverse %a, dims = [0, 2] : ", "3x4x5xf32"),
        ("iota", "stablehlo.iota dim = 1 : ", "3x4x5xi32"),
    ):
        r = f"tensor<{result}>"
        yield case(name, f"  %r = {text}{r}\n  return %r : {r}", r, x, tolerance=0)
    one = numbers("one", (1, 4))
    yield case(
        "broadcast_expands",
        "  %r = stablehlo.broadcast_in_dim %a, dims = [1, 0] : ({A}) -> tensor<4x3xf32>\n"
        "  return %r : tensor<4x3xf32>",
        "tensor<4x3xf32>",
        one,
        tolerance=0,
    )
    y = numbers("y", (3, 2, 5))
    yield case(
        "concatenate",
        "  %r = stablehlo.concatenate %a, %b, %a, dim = 1 : ({A}, {B}, {A}) -> tensor<3x10x5xf32>\n"
        "  return %r : tensor<3x10x5xf32>",
        "tensor<3x10x5xf32>",
        x,
        y,
        tolerance=0,
    )
    yield from _pads(case, numbers)
    yield from _dynamic_slices(case, numbers)


def _pads(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    x, value = numbers("pad", (4, 3)), np.float32(7).reshape(())
    for k, (low, high, interior) in enumerate(
        (
            ((1, 0), (2, 3), (0, 0)),
            ((-1, -2), (0, 1), (0, 0)),
            ((1, -2), (-3, 2), (2, 1)),
            ((-5, 0), (0, -3), (1, 3)),
            ((-2, 1), (-2, 1), (1, 0)),
            ((0, -7), (0, 0), (0, 2)),
        )
    ):
        shape = [
            max(0, lo + n + max(n - 1, 0) * i + hi)
            for n, lo, hi, i in zip((4, 3), low, high, interior, strict=True)
        ]
        r = f"tensor<{shape[0]}x{shape[1]}xf32>"
        text = (
            f"  %r = stablehlo.pad %a, %b, low = {list(low)}, high = {list(high)}, "
            f"interior = {list(interior)} : ({{A}}, {{B}}) -> {r}\n  return %r : {r}"
        )
        oracle = "xla" if 0 not in shape else "reference"
        yield case(f"pad_{k}", text, r, x, value, tolerance=0, oracle=oracle)


def _dynamic_slices(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    x, update = numbers("ds", (6, 5)), numbers("dsu", (2, 3))
    for k, (i, j) in enumerate(((0, 0), (3, 1), (5, 4), (-3, 99))):
        start = (np.int32(i).reshape(()), np.int32(j).reshape(()))
        yield case(
            f"dynamic_slice_{k}",
            "  %r = stablehlo.dynamic_slice %a, %b, %c, sizes = [2, 3] : ({A}, {B}, {C}) -> tensor<2x3xf32>\n"
            "  return %r : tensor<2x3xf32>",
            "tensor<2x3xf32>",
            x,
            *start,
            tolerance=0,
        )
        yield case(
            f"dynamic_update_slice_{k}",
            "  %r = stablehlo.dynamic_update_slice %a, %b, %c, %d : ({A}, {B}, {C}, {D}) -> {A}\n"
            "  return %r : {A}",
            "{A}",
            x,
            update,
            *start,
            tolerance=0,
        )


# ------------------------------------------------------------------------- contractions


def contractions(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    def dot(name: str, a: Array, b: Array, dims: str, result: str, tolerance: float = 2e-6) -> Case:
        text = f"  %r = stablehlo.dot_general %a, %b, {dims} : ({{A}}, {{B}}) -> tensor<{result}>\n"
        text += f"  return %r : tensor<{result}>"
        return case(name, text, f"tensor<{result}>", a, b, tolerance=tolerance)

    a, b = numbers("da", (2, 3, 4, 5)), numbers("db", (5, 2, 6, 4))
    two = "batching_dims = [0] x [1], contracting_dims = [3, 2] x [0, 3]"
    yield dot("dot_two_contracting", a, b, two, "2x3x6xf32")
    yield dot("dot_outer", a[0, 0], b[0, 0], "contracting_dims = [] x []", "4x5x6x4xf32")
    yield dot(
        "dot_two_batch",
        a,
        numbers("dc", (4, 2, 5)),
        "batching_dims = [2, 0] x [0, 1], contracting_dims = [3] x [2]",
        "4x2x3xf32",
    )
    plain = "contracting_dims = [1] x [0]"
    for kind in (np.int32, np.int8, np.uint8, np.int64):
        x, y = numbers("ix", (4, 7), kind), numbers("iy", (7, 3), kind)
        name = np.dtype(kind).name.replace("int", "i")
        yield dot(f"dot_{name}", x, y, plain, f"4x3x{name}", 0)
        if name in ("i8", "ui8"):
            yield dot(f"dot_{name}_i32", x, y, plain, "4x3xi32", 0)
    big = np.full((2, 3), 2**30 + 12345, np.int32)
    yield dot("dot_wraps", big, big.T.copy(), plain, "2x2xi32", 0)
    for kind in (ml_dtypes.bfloat16, np.float16):
        x, y = numbers("hx", (4, 64), kind), numbers("hy", (64, 3), kind)
        name = "bf16" if kind is ml_dtypes.bfloat16 else "f16"
        yield dot(f"dot_{name}", x, y, plain, f"4x3x{name}", 4e-3)
        yield dot(f"dot_{name}_f32", x, y, plain, "4x3xf32", 2e-6)
    z = numbers("dz", (3, 4), np.complex64)
    yield dot("dot_complex", z, z.T.copy(), plain, "3x3xcomplex<f32>")
    yield dot("dot_empty", numbers("de", (3, 0)), numbers("df", (0, 2)), plain, "3x2xf32", 0)


def convolutions(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    x = numbers("cx", (4, 9, 8, 6))
    settings: dict[str, dict[str, Any]] = {
        "plain": {},
        "strided": {"stride": [2, 3], "pad": [[1, 2], [0, 1]]},
        "negative_pad": {"pad": [[-1, 2], [3, -2]]},
        "lhs_dilated": {"lhs_dilate": [2, 3], "pad": [[1, 0], [2, 2]]},
        "rhs_dilated": {"rhs_dilate": [3, 2], "stride": [1, 2]},
        "reversed": {"reverse": ["true", "false"]},
        "all": {
            "stride": [2, 1],
            "pad": [[2, 1], [-1, 3]],
            "lhs_dilate": [2, 2],
            "rhs_dilate": [2, 1],
            "reverse": ["true", "true"],
        },
        "feature_groups": {"features": 3},
        "depthwise": {"features": 6, "stride": [2, 2]},
        "batch_groups": {"batches": 2},
        "batch_groups_all": {"batches": 4, "stride": [1, 2], "lhs_dilate": [2, 1]},
    }
    for name, setting in settings.items():
        yield _convolution(case, numbers, f"conv_{name}", x, setting)
    x = numbers("c8", (2, 9, 8, 6), np.int32)
    yield _convolution(case, numbers, "conv_i32", x, {"stride": [2, 1]})
    x = numbers("ch", (2, 9, 8, 6), ml_dtypes.bfloat16)
    yield _convolution(case, numbers, "conv_bf16", x, {"pad": [[1, 1], [1, 1]]}, 1e-2)
    yield case(
        "conv_1d_layouts",
        "  %r = stablehlo.convolution(%a, %b) dim_numbers = [f, b, 0]x[o, 0, i]->[0, f, b], window = "
        "{stride = [2], pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
        ": ({A}, {B}) -> tensor<5x4x2xf32>\n  return %r : tensor<5x4x2xf32>",
        "tensor<5x4x2xf32>",
        numbers("c1", (3, 2, 10)),
        numbers("c1k", (4, 3, 3)),
        tolerance=2e-6,
    )


def _convolution(
    case: Callable[..., Case],
    numbers: Callable[..., Array],
    name: str,
    x: Array,
    setting: dict[str, Any],
    tolerance: float = 1e-5,
) -> Case:
    features, batches = setting.get("features", 1), setting.get("batches", 1)
    outputs = 12 if batches > 1 or features > 1 else 5
    kernel = numbers(name, (3, 2, 6 // features, outputs), x.dtype)
    ones = [1, 1]
    stride, pads = setting.get("stride", ones), setting.get("pad", [[0, 0], [0, 0]])
    base, taps = setting.get("lhs_dilate", ones), setting.get("rhs_dilate", ones)
    space = [
        (n - 1) * d + 1 + lo + hi - ((k - 1) * r + 1)
        for n, d, (lo, hi), k, r in zip((9, 8), base, pads, (3, 2), taps, strict=True)
    ]
    sizes = [left // s + 1 for left, s in zip(space, stride, strict=True)]
    element = {"float32": "f32", "int32": "i32", "bfloat16": "bf16"}[x.dtype.name]
    r = f"tensor<{x.shape[0] // batches}x{sizes[0]}x{sizes[1]}x{outputs}x{element}>"
    reverse = f", reverse = [{', '.join(setting['reverse'])}]" if "reverse" in setting else ""
    text = (
        "  %r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
        f"window = {{stride = {stride}, pad = {pads}, lhs_dilate = {base}, rhs_dilate = {taps}{reverse}}} "
        f"{{batch_group_count = {batches} : i64, feature_group_count = {features} : i64}} "
        f": ({{A}}, {{B}}) -> {r}\n  return %r : {r}"
    )
    return case(name, text, r, x, kernel, tolerance=tolerance)


# ------------------------------------------------------------------------- reductions, windows


def reductions(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    x = numbers("red", (3, 70, 4))
    start = np.float32(0.5).reshape(())
    for op in ("add", "maximum", "minimum", "multiply"):
        text = (
            f'  %r = "stablehlo.reduce"(%a, %b) <{{dimensions = array<i64: 1, 0>}}> {body(op)} '
            ": ({A}, {B}) -> tensor<4xf32>\n  return %r : tensor<4xf32>"
        )
        # XLA may count a start that is no identity several times
        yield case(
            f"reduce_{op}", text, "tensor<4xf32>", x, start, oracle="reference", tolerance=1e-5
        )
    for op, element in product(("and", "or", "xor", "add", "maximum"), ("i32", "ui8")):
        y = numbers("redi", (5, 6), np.int32 if element == "i32" else np.uint8)
        text = (
            f'  %r = "stablehlo.reduce"(%a, %b) <{{dimensions = array<i64: 0>}}> {body(op, element)} '
            f": ({{A}}, {{B}}) -> tensor<6x{element}>\n  return %r : tensor<6x{element}>"
        )
        initial = np.array(5, y.dtype)
        yield case(f"reduce_{op}_{element}", text, f"tensor<6x{element}>", y, initial, tolerance=0)
    flags = numbers("flags", (5, 6), bool)
    for op in ("and", "or"):
        text = (
            f'  %r = "stablehlo.reduce"(%a, %b) <{{dimensions = array<i64: 1>}}> {body(op, "i1")} '
            ": ({A}, {B}) -> tensor<5xi1>\n  return %r : tensor<5xi1>"
        )
        yield case(f"reduce_{op}_i1", text, "tensor<5xi1>", flags, np.array(op == "and"))
    h = numbers("redh", (40, 3), ml_dtypes.bfloat16)
    text = (
        f'  %r = "stablehlo.reduce"(%a, %b) <{{dimensions = array<i64: 0>}}> {body("add", "bf16")} '
        ": ({A}, {B}) -> tensor<3xbf16>\n  return %r : tensor<3xbf16>"
    )
    yield case("reduce_add_bf16", text, "tensor<3xbf16>", h, np.array(0, h.dtype), tolerance=5e-2)
    yield from _argmax(case, numbers)
    sub = (
        f'  %r = "stablehlo.reduce"(%a, %b) <{{dimensions = array<i64: 0>}}> {body("subtract")} '
        ": ({A}, {B}) -> tensor<3xf32>\n  return %r : tensor<3xf32>"
    )
    y = numbers("sub", (5, 3))
    yield case("reduce_in_order", sub, "tensor<3xf32>", y, start, tolerance=1e-6)
    mapped = (
        f'  %r = "stablehlo.map"(%a, %b) <{{dimensions = array<i64: 0, 1>}}> {body("multiply")} '
        ": ({A}, {B}) -> {A}\n  return %r : {A}"
    )
    yield case("map", mapped, "{A}", y, numbers("map", (5, 3)))


def _argmax(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    for count in (7, 200):
        x = numbers("arg", (4, count))
        x[1, 3] = x[1, 5] = 9
        x[2, 2] = np.nan
        text = (
            f"  %position = stablehlo.iota dim = 1 : tensor<4x{count}xi32>\n"
            "  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
            "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
            f'  %r:2 = "stablehlo.reduce"(%a, %position, %low, %zero) <{{dimensions = array<i64: 1>}}> {ARGMAX} '
            f": ({{A}}, tensor<4x{count}xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)\n"
            "  return %r#0, %r#1 : tensor<4xf32>, tensor<4xi32>"
        )
        yield case(f"argmax_{count}", text, "tensor<4xf32>, tensor<4xi32>", x, tolerance=0)


def windows(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    x = numbers("win", (9, 8))
    settings: dict[str, tuple[list[int], list[int], list[int], list[int], list[list[int]]]] = {
        "plain": ([2, 3], [1, 1], [1, 1], [1, 1], [[0, 0], [0, 0]]),
        "strided": ([3, 2], [2, 3], [1, 1], [1, 1], [[1, 1], [0, 2]]),
        "dilated": ([2, 2], [1, 2], [2, 1], [3, 2], [[1, 0], [2, 1]]),
        "negative": ([2, 2], [1, 1], [1, 1], [1, 1], [[-1, -2], [-3, 1]]),
        "cumulative": ([9, 1], [1, 1], [1, 1], [1, 1], [[8, 0], [0, 0]]),
        "cumulative_back": ([1, 8], [1, 1], [1, 1], [1, 1], [[0, 0], [0, 7]]),
    }
    for (name, (sizes, strides, base, dilate, pads)), (op, start) in product(
        settings.items(), (("add", 0.5), ("add", 0.0), ("maximum", -np.inf), ("minimum", 0.1))
    ):
        shape = [
            ((n - 1) * b + 1 + lo + hi - ((k - 1) * d + 1)) // s + 1
            for n, k, s, b, d, (lo, hi) in zip(
                (9, 8), sizes, strides, base, dilate, pads, strict=True
            )
        ]
        r = f"tensor<{shape[0]}x{shape[1]}xf32>"
        lists = [str(v)[1:-1] for v in (sizes, strides, base, dilate)]
        text = (
            '  %r = "stablehlo.reduce_window"(%a, %b) <{'
            f"window_dimensions = array<i64: {lists[0]}>, window_strides = array<i64: {lists[1]}>, "
            f"base_dilations = array<i64: {lists[2]}>, window_dilations = array<i64: {lists[3]}>, "
            f"padding = dense<{pads}> : tensor<2x2xi64>}}> {body(op)} : ({{A}}, {{B}}) -> {r}\n"
            f"  return %r : {r}"
        )
        initial = np.array(start, np.float32)
        yield case(
            f"window_{name}_{op}_{start}", text, r, x, initial, oracle="reference", tolerance=3e-6
        )
    yield from _select_and_scatter(case, numbers)


def _select_and_scatter(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    x = numbers("sas", (8, 9))
    x[2, 3] = x[2, 4] = x[3, 3] = 5  # ties go to the first
    ge = (
        "({\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    %s = stablehlo.compare GE, %x, %y : "
        "(tensor<f32>, tensor<f32>) -> tensor<i1>\n    stablehlo.return %s : tensor<i1>\n  }"
    )
    add = body("add").replace("%x", "%p").replace("%y", "%q").replace("%s", "%t")[1:]
    for name, sizes, strides, pads, out in (
        ("disjoint", "2, 3", "2, 3", "[[0, 0], [0, 0]]", (4, 3)),
        ("overlapping", "3, 3", "2, 2", "[[1, 1], [1, 1]]", (4, 5)),
    ):
        source = numbers(f"sas{name}", out)
        text = (
            '  %r = "stablehlo.select_and_scatter"(%a, %b, %c) <{'
            f"window_dimensions = array<i64: {sizes}>, window_strides = array<i64: {strides}>, "
            f"padding = dense<{pads}> : tensor<2x2xi64>}}> {ge}, {add} : ({{A}}, {{B}}, {{C}}) -> {{A}}\n"
            "  return %r : {A}"
        )
        start = np.float32(0.25).reshape(())
        yield case(f"select_and_scatter_{name}", text, "{A}", x, source, start, tolerance=1e-6)


# ------------------------------------------------------------------------- gather, scatter


def indexing(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    def gather(name: str, a: Array, i: Array, dims: str, sizes: str, result: str) -> Case:
        text = (
            f'  %r = "stablehlo.gather"(%a, %b) <{{dimension_numbers = #stablehlo.gather<{dims}>, '
            f"indices_are_sorted = false, slice_sizes = array<i64: {sizes}>}}> : ({{A}}, {{B}}) -> "
            f"tensor<{result}>\n  return %r : tensor<{result}>"
        )
        return case(f"gather_{name}", text, f"tensor<{result}>", a, i, tolerance=0)

    a = numbers("g", (6, 5, 4))
    rows = np.array([[0, 3], [5, -2], [9, 1]], np.int32)
    rows_dims = "offset_dims = [2, 3], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2"
    yield gather("rows", a, rows, rows_dims, "1, 5, 4", "3x2x5x4xf32")
    yield gather(
        "windows",
        a,
        np.array([[0, 1], [4, 9], [-1, 0]], np.int32),
        "offset_dims = [0, 2, 3], start_index_map = [2, 0], index_vector_dim = 1",
        "2, 3, 2",
        "2x3x3x2xf32",
    )
    yield gather(
        "batched",
        a,
        np.array([[0, 3], [1, 1], [4, 3], [0, 9], [2, -2], [1, 2]]),
        "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], "
        "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2",
        "1, 1, 4",
        "6x2x4xf32",
    )
    vector_first = "offset_dims = [0], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 0"
    yield gather(
        "vector_first",
        a,
        np.array([[1, 2, 5], [0, 4, 3]], np.int64),
        vector_first,
        "1, 1, 4",
        "4x3xf32",
    )
    yield from _scatters(case, numbers)


def _scatters(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    def scatter(name: str, a: Array, i: Array, u: Array, dims: str, region: str) -> Case:
        text = (
            f'  %r = "stablehlo.scatter"(%a, %b, %c) <{{scatter_dimension_numbers = #stablehlo.scatter<{dims}>, '
            f"indices_are_sorted = false, unique_indices = false}}> {region} : ({{A}}, {{B}}, {{C}}) -> {{A}}\n"
            "  return %r : {A}"
        )
        return case(f"scatter_{name}", text, "{A}", a, i, u, tolerance=1e-6)

    a, u = numbers("s", (6, 5)), numbers("su", (4, 2, 5))
    i = np.array([[0, 3], [3, 3], [5, 6], [-1, 0]], np.int32)
    rows = "update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2"
    for op in ("add", "multiply", "maximum", "minimum", "subtract"):
        yield scatter(f"rows_{op}", a, i, u, rows, body(op))
    unique = np.array([[0], [2], [7]], np.int32)
    returns = (
        "({\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    stablehlo.return %y : tensor<f32>\n  })"
    )
    set_dims = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
    yield scatter("set", a, unique, numbers("ss", (3, 5)), set_dims, returns)
    corners = np.array([[4, 0], [-1, 1], [0, 4], [2, 2], [2, 1]], np.int32)
    windows_dims = (
        "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1"
    )
    yield scatter("windows", a, corners, numbers("sw", (5, 2, 2)), windows_dims, body("add"))
    yield scatter(
        "batched",
        a,
        np.array([[0, 2, 1], [2, 2, 2], [4, 5, -1], [1, 1, 3], [0, 0, 0], [3, 1, 4]]),
        numbers("sb", (6, 3)),
        "inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], "
        "scatter_dims_to_operand_dims = [1], index_vector_dim = 2",
        body("add"),
    )
    integers = numbers("si", (6, 5), np.int32)
    for op in ("and", "or", "xor", "add"):
        updates = numbers("siu", (4, 2, 5), np.int32)
        yield scatter(f"i32_{op}", integers, i, updates, rows, body(op, "i32"))


# ------------------------------------------------------------------------- order


_LT = """({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
    %s = stablehlo.compare DIRECTION, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %s : tensor<i1>
  })"""
_TWO_KEYS = """({
  ^bb0(%x: tensor<i32>, %y: tensor<i32>, %v: tensor<f32>, %w: tensor<f32>):
    %eq = stablehlo.compare EQ, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %lt = stablehlo.compare LT, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %gt = stablehlo.compare GT, %v, %w, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %s = stablehlo.select %eq, %gt, %lt : tensor<i1>, tensor<i1>
    stablehlo.return %s : tensor<i1>
  })"""


def orders(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    x = np.round(numbers("sort", (3, 37)), 1)
    x[0, :4] = np.nan, -0.0, 0.0, np.inf
    position = np.broadcast_to(np.arange(37, dtype=np.int32), (3, 37)).copy()
    for direction in ("LT", "GT"):
        text = (
            '  %r:2 = "stablehlo.sort"(%a, %b) <{dimension = 1 : i64, is_stable = true}> '
            f"{_LT.replace('DIRECTION', direction)} : ({{A}}, {{B}}) -> ({{A}}, {{B}})\n"
            "  return %r#0, %r#1 : {A}, {B}"
        )
        yield case(f"sort_{direction}", text, "{A}, {B}", x, position, tolerance=0)
    keys = numbers("keys", (37, 3), np.int32) % 4
    text = (
        '  %r:2 = "stablehlo.sort"(%a, %b) <{dimension = 0 : i64, is_stable = true}> '
        f"{_TWO_KEYS} : ({{A}}, {{B}}) -> ({{A}}, {{B}})\n  return %r#0, %r#1 : {{A}}, {{B}}"
    )
    yield case("sort_two_keys", text, "{A}, {B}", keys, numbers("values", (37, 3)), tolerance=0)
    plain = _LT.replace("f32", "i32").replace(", %i: tensor<i32>, %j: tensor<i32>", "")
    for direction, kind in (("LT", np.int32), ("GT", np.uint8), ("GT", np.int32)):
        element = "ui8" if kind is np.uint8 else "i32"
        sign = "UNSIGNED" if element == "ui8" else "SIGNED"
        region = (
            plain.replace("i32", element)
            .replace("TOTALORDER", sign)
            .replace("DIRECTION", direction)
        )
        text = (
            f'  %r = "stablehlo.sort"(%a) <{{dimension = 0 : i64, is_stable = true}}> {region} : ({{A}}) -> {{A}}\n'
            "  return %r : {A}"
        )
        yield case(
            f"sort_{direction}_{element}", text, "{A}", numbers("sorti", (50, 2), kind), tolerance=0
        )
    top = (
        '  %r:2 = "chlo.top_k"(%a) <{k = 5 : i64}> : ({A}) -> (tensor<3x5xELEMENT>, tensor<3x5xi32>)\n'
        "  return %r#0, %r#1 : tensor<3x5xELEMENT>, tensor<3x5xi32>"
    )
    for element, values in (
        ("f32", x[1:].repeat(2, 0)[:3]),
        ("i32", numbers("top", (3, 20), np.int32) // 9),
    ):
        text, results = top.replace("ELEMENT", element), f"tensor<3x5x{element}>, tensor<3x5xi32>"
        yield case(f"top_k_{element}", text, results, values, tolerance=0)


# ------------------------------------------------------------------------- solvers


def solvers(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    for kind, shape, lengths, source, result in (
        ("FFT", (3, 8), "8", np.complex64, "3x8xcomplex<f32>"),
        ("FFT", (2, 6, 8), "6, 8", np.complex64, "2x6x8xcomplex<f32>"),
        ("IFFT", (3, 7), "7", np.complex64, "3x7xcomplex<f32>"),
        ("RFFT", (3, 8), "8", np.float32, "3x5xcomplex<f32>"),
        ("RFFT", (2, 4, 7), "4, 7", np.float64, "2x4x4xcomplex<f64>"),
        ("IRFFT", (3, 5), "8", np.complex64, "3x8xf32"),
        ("IRFFT", (3, 5), "9", np.complex64, "3x9xf32"),
    ):
        x = numbers(f"fft{kind}", shape, source)
        text = (
            f'  %r = "stablehlo.fft"(%a) <{{fft_type = #stablehlo<fft_type {kind}>, '
            f"fft_length = array<i64: {lengths}>}}> : ({{A}}) -> tensor<{result}>\n"
            f"  return %r : tensor<{result}>"
        )
        name = f"{kind}_{lengths.replace(', ', 'x')}_{shape[-1]}"
        yield case(name, text, f"tensor<{result}>", x, tolerance=1e-6)
    for dtype in (np.float32, np.complex64):
        x = numbers("spd", (2, 4, 4), dtype)
        spd = np.matmul(x, np.conj(np.swapaxes(x, -1, -2))) + 4 * np.eye(4, dtype=dtype)
        for lower in ("true", "false"):
            text = f"  %r = stablehlo.cholesky %a, lower = {lower} : {{A}}\n  return %r : {{A}}"
            # only the triangle counts: the rest is anyone's
            text = text.replace("return %r", _triangle(lower, spd) + "return %m")
            yield case(f"cholesky_{lower}_{np.dtype(dtype).name}", text, "{A}", spd, tolerance=1e-6)
        for left, lower, unit, transpose in product(
            ("true", "false"),
            ("true", "false"),
            ("true", "false"),
            ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
        ):
            if dtype is np.complex64 and unit == "true":
                continue
            b = numbers("rhs", (2, 4, 3) if left == "true" else (2, 3, 4), dtype)
            text = (
                f'  %r = "stablehlo.triangular_solve"(%a, %b) <{{left_side = {left}, lower = {lower}, '
                f"unit_diagonal = {unit}, transpose_a = #stablehlo<transpose {transpose}>}}> "
                ": ({A}, {B}) -> {B}\n  return %r : {B}"
            )
            name = f"solve_{left}_{lower}_{unit}_{transpose}_{np.dtype(dtype).name}"
            yield case(name, text, "{B}", spd, b, tolerance=2e-5)


def _triangle(lower: str, a: Array) -> str:
    mask = np.tril(np.ones((4, 4), bool)) if lower == "true" else np.triu(np.ones((4, 4), bool))
    rows = str([[int(v) for v in row] for row in mask]).replace("1", "true").replace("0", "false")
    zero = "(0.0, 0.0)" if a.dtype.kind == "c" else "0.0"
    return (
        f"%k = stablehlo.constant dense<{rows}> : tensor<4x4xi1>\n"
        "  %b = stablehlo.broadcast_in_dim %k, dims = [1, 2] : (tensor<4x4xi1>) -> tensor<2x4x4xi1>\n"
        f"  %z = stablehlo.constant dense<{zero}> : {{A}}\n"
        "  %m = stablehlo.select %b, %r, %z : tensor<2x4x4xi1>, {A}\n  "
    )


# ------------------------------------------------------------------------- control, randomness


def control(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    branches = ", ".join(
        f"{{\n    %c{k} = stablehlo.constant dense<{k}.5> : tensor<f32>\n    stablehlo.return %c{k} : tensor<f32>\n  }}"
        for k in range(3)
    )
    for index in (-1, 0, 1, 2, 5):
        text = f'  %r = "stablehlo.case"(%a) ({branches}) : ({{A}}) -> tensor<f32>\n  return %r : tensor<f32>'
        yield case(f"case_{index}", text, "tensor<f32>", np.int32(index).reshape(()))
    for flag in (True, False):
        parts = branches.split(", ")
        text = f'  %r = "stablehlo.if"(%a) ({", ".join(parts[:2])}) : ({{A}}) -> tensor<f32>\n  return %r : tensor<f32>'
        yield case(f"if_{flag}", text, "tensor<f32>", np.array(flag))
    text = """  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %x = %b) : tensor<i32>, tensor<3xf32>
    cond {
      %p = stablehlo.compare LT, %i, %a, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %n = stablehlo.add %i, %one : tensor<i32>
      %y = func.call @step(%x) : (tensor<3xf32>) -> tensor<3xf32>
      stablehlo.return %n, %y : tensor<i32>, tensor<3xf32>
    }
  return %r#0, %r#1 : tensor<i32>, tensor<3xf32>"""
    step = """func.func private @step(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = stablehlo.sine %x : tensor<3xf32>
  %z = stablehlo.add %x, %y : tensor<3xf32>
  return %z : tensor<3xf32>
}"""
    for count in (0, 4):
        yield case(
            f"while_{count}",
            text,
            "tensor<i32>, tensor<3xf32>",
            np.int32(count).reshape(()),
            numbers("while", (3,)),
            functions=step,
        )


def randomness(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    del numbers
    states = np.array([[5, 7, 9], [2**63 + 12345, 2**64 - 3, 77]], np.uint64)
    shapes = ("ui32", "16x24xui32", "5x7xui32", "5x7xui64", "9xui16", "8xui8", "3x6x5xui32")
    for (algorithm, words), shape in product(
        (("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 2)), shapes
    ):
        state = states[0 if shape == "ui32" else 1, :words].copy()
        r = f"tensor<{shape}>"
        text = (
            f"  %s, %o = stablehlo.rng_bit_generator %a, algorithm = {algorithm} : ({{A}}) -> ({{A}}, {r})\n"
            f"  return %s, %o : {{A}}, {r}"
        )
        yield case(f"{algorithm}_{words}_{shape}", text, f"{{A}}, {r}", state, tolerance=0)


def normalisation(case: Callable[..., Case], numbers: Callable[..., Array]) -> Iterator[Case]:
    x, scale, offset = numbers("bn", (4, 3, 5)), numbers("bs", (3,)), numbers("bo", (3,))
    mean, variance = numbers("bm", (3,)), np.abs(numbers("bv", (3,))) + 0.1
    tail = "<{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}>"
    yield case(
        "batch_norm_inference",
        f'  %r = "stablehlo.batch_norm_inference"(%a, %b, %c, %d, %e) {tail} '
        ": ({A}, {B}, {C}, {D}, {E}) -> {A}\n  return %r : {A}",
        "{A}",
        x,
        scale,
        offset,
        mean,
        variance,
        tolerance=3e-6,
    )
    yield case(
        "batch_norm_training",
        f'  %r:3 = "stablehlo.batch_norm_training"(%a, %b, %c) {tail} : ({{A}}, {{B}}, {{C}}) -> ({{A}}, {{B}}, {{B}})\n'
        "  return %r#0, %r#1, %r#2 : {A}, {B}, {B}",
        "{A}, {B}, {B}",
        x,
        scale,
        offset,
        tolerance=3e-6,
    )
    yield case(
        "batch_norm_grad",
        f'  %r:3 = "stablehlo.batch_norm_grad"(%a, %b, %c, %d, %e) {tail} '
        ": ({A}, {B}, {C}, {D}, {A}) -> ({A}, {B}, {B})\n  return %r#0, %r#1, %r#2 : {A}, {B}, {B}",
        "{A}, {B}, {B}",
        x,
        scale,
        mean,
        variance,
        numbers("bg", (4, 3, 5)),
        tolerance=1e-5,
    )
