"""Indices along a tiled dimension: gather, scatter, dynamic slices and updates, one-element slices.

Every case runs globally and on all devices, with padding that is NaN. Indices and starts are given,
out of bounds on both sides included: they clamp (or drop) on the global size.
"""

from __future__ import annotations

import numpy as np
import pytest

from partir.partir_dialect.dtypes import numpy_dtype

MESHES = [{"a": 2}, {"a": 3}, {"a": 4}, {"a": 8}, {"a": 2, "b": 2}, {"b": 3, "a": 2}]
"""A dimension is tiled along all axes of the mesh, in order."""


def check(case, text, mesh, tiles, *inputs, counts=None, uneven=True):
    """Tiles (name, dim) along every axis of the mesh, then compares; inputs of None are drawn."""
    c = case(text, **mesh)
    statuses = [s for axis in mesh for s in c.step(*((name, dim, axis) for name, dim in tiles))]
    if uneven:  # only the first axis may leave padding
        assert statuses[0] == "done"
    else:
        assert set(statuses) == {"done"}
    drawn = c.inputs(0)
    types = [argument.type.element_type for argument in c.source.function.body.block.args]
    given = [
        one if x is None else np.asarray(x).astype(numpy_dtype(t))
        for one, x, t in zip(drawn, inputs or [None] * len(drawn), types, strict=True)
    ]
    c.inputs = lambda seed: given
    if counts is not None:
        assert c.counts() == counts
    return c.verify()


def take(size, rows=9, element="f32", index="i32", width=3):
    return f"""
func.func @main(%x: tensor<{size}x{width}x{element}> loc("x"), %i: tensor<{rows}x{index}> loc("i"))
    -> tensor<{rows}x{width}x{element}> {{
  %r = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, {width}>, indices_are_sorted = true}}>
    : (tensor<{size}x{width}x{element}>, tensor<{rows}x{index}>) -> tensor<{rows}x{width}x{element}>
  return %r : tensor<{rows}x{width}x{element}>
}}"""


FAR = [0, 7, -1, 23, 24, 100, -2147483648, 2147483647, 12]


@pytest.mark.parametrize("mesh", MESHES)
def test_gather_along_the_rows_is_a_masked_sum(case, mesh):
    check(case, take(24), mesh, [("x", 0)], None, FAR, counts={"all_reduce": 1})


@pytest.mark.parametrize(("size", "axis"), [(7, 2), (13, 4), (30, 8), (3, 4), (50, 3)])
def test_gather_of_uneven_tiles_never_meets_the_padding(case, size, axis):
    far = [0, size - 1, size, -3, 1000, 2, size // 2, 1, size - 2]
    check(case, take(size), {"a": axis}, [("x", 0)], None, far, counts={"all_reduce": 1})


@pytest.mark.parametrize(
    "element", ["f32", "f64", "bf16", "i32", "i8", "ui32", "i1", "complex<f32>"]
)
def test_gather_of_every_type(case, element):
    x = np.arange(24 * 3).reshape(24, 3) % 50
    x = x % 3 == 0 if element == "i1" else x
    text = take(24, element=element)
    if element == "complex<f32>":
        text = text.replace("-> tensor<9x3xcomplex<f32>> {", "-> tensor<9x3xf32> {").replace(
            "  return %r : tensor<9x3xcomplex<f32>>",
            "  %s = stablehlo.real %r : (tensor<9x3xcomplex<f32>>) -> tensor<9x3xf32>\n"
            "  return %s : tensor<9x3xf32>",
        )
    plan = check(case, text, {"a": 4}, [("x", 0)], x, FAR)
    (reduce,) = [r for r in plan.reshards if r.kind == "all_reduce"]
    assert reduce.move.reducer == ("or" if element == "i1" else "add")


@pytest.mark.parametrize(
    ("index", "values"),
    [
        ("i8", [0, 127, -128, 100, 5, 126, 64, 63, 1]),
        ("ui8", [0, 255, 128, 100, 5, 254, 64, 63, 1]),
        ("i64", [0, 2**40, -(2**40), 299, 300, 2**62, 150, 149, 1]),
        ("ui32", [0, 2**31, 2**32 - 1, 299, 300, 7, 150, 149, 1]),
    ],
)
def test_gather_by_indices_of_every_type(case, index, values):
    """300 rows: more than an index of eight bits can say, globally and in a tile."""
    for axis in (2, 4):
        check(case, take(300, index=index), {"a": axis}, [("x", 0)], None, values)


def test_gather_picks_around_nan_and_inf(case):
    """What is not taken may be anything: values are chosen, not multiplied by zero."""
    x = np.arange(24 * 3, dtype=np.float32).reshape(24, 3)
    x[5], x[6], x[23] = np.nan, np.inf, -np.inf
    check(case, take(24), {"a": 4}, [("x", 0)], x, [0, 1, 7, 22, 8, 9, 10, 11, 12])


POINTS = """
func.func @main(%x: tensor<8x2x12xf32> loc("x"), %i: tensor<2x5xi32> loc("i")) -> tensor<5x2xf32> {
  %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0, 2], start_index_map = [2, 0], index_vector_dim = 0>,
      slice_sizes = array<i64: 1, 2, 1>}>
    : (tensor<8x2x12xf32>, tensor<2x5xi32>) -> tensor<5x2xf32>
  return %r : tensor<5x2xf32>
}"""
WHERE = [[0, 11, 12, -1, 5], [7, 0, -5, 8, 3]]


def test_gather_by_two_components_one_or_both_tiled(case):
    for tiles in ([("x", 0)], [("x", 2)]):
        check(case, POINTS, {"a": 4}, tiles, None, WHERE, counts={"all_reduce": 1})
    c = case(POINTS, a=2, b=4)
    c.step(("x", 0, "a"), ("x", 2, "b"))
    c.inputs = lambda seed: [
        np.random.default_rng(1).standard_normal((8, 2, 12)).astype(np.float32),
        np.array(WHERE, np.int32),
    ]
    c.verify()


def test_gather_of_a_window_of_one_and_batched(case):
    text = """
func.func @main(%x: tensor<4x12x3xf32> loc("x"), %i: tensor<4x5x1xi32> loc("i"))
    -> tensor<4x5x1x3xf32> {
  %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2, 3],
      operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1],
      index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 3>}>
    : (tensor<4x12x3xf32>, tensor<4x5x1xi32>) -> tensor<4x5x1x3xf32>
  return %r : tensor<4x5x1x3xf32>
}"""
    i = np.arange(-3, 17).reshape(4, 5, 1)
    for axis in (2, 3, 4):
        check(case, text, {"a": axis}, [("x", 1)], None, i, counts={"all_reduce": 1})
    c = case(text, a=2, b=4)
    c.step(("x", 0, "a"))
    c.step(("x", 1, "b"))
    c.verify()


def scatter(size, updates=9, element="f32", op="add", index="i32"):
    return f"""
func.func @main(%o: tensor<{size}x3x{element}> loc("o"), %i: tensor<{updates}x1x{index}> loc("i"),
                %u: tensor<{updates}x3x{element}> loc("u")) -> tensor<{size}x3x{element}> {{
  %r = "stablehlo.scatter"(%o, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
      %s = stablehlo.{op} %a, %b : tensor<{element}>
      stablehlo.return %s : tensor<{element}>
  }}) : (tensor<{size}x3x{element}>, tensor<{updates}x1x{index}>, tensor<{updates}x3x{element}>)
    -> tensor<{size}x3x{element}>
  return %r : tensor<{size}x3x{element}>
}}"""


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("op", ["add", "maximum", "multiply"])
def test_scatter_drops_what_is_in_other_tiles(case, mesh, op):
    i = np.array(FAR).reshape(9, 1)
    check(case, scatter(24, op=op), mesh, [("o", 0)], None, i, None, counts={}, uneven=False)


def test_scatter_of_types_and_uneven_tiles(case):
    i = np.array([0, 6, 7, -1, 6, 3, 100, -100, 2]).reshape(9, 1)
    for size, axis in ((7, 2), (7, 4), (13, 4), (3, 4)):
        check(case, scatter(size), {"a": axis}, [("o", 0)], None, i, None, counts={})
    for element, op in (("i32", "add"), ("bf16", "maximum"), ("i8", "minimum"), ("i1", "or")):
        check(case, scatter(8, element=element, op=op), {"a": 4}, [("o", 0)], None, i, None)
    wide = np.array([0, 127, 99, -1, -128, 3, 100, 50, 49]).reshape(9, 1)
    check(case, scatter(300, index="i8"), {"a": 2}, [("o", 0)], None, wide, None)
    for index in ("i8", "ui8"):  # the mark "out of bounds", 300, is no number of eight bits
        wide = np.array([0, 127, 99, 44, 45, 3, 100, 50, 49]).reshape(9, 1)
        check(case, scatter(600, index=index), {"a": 2}, [("o", 0)], None, wide, None)
    far = np.array([0, 2**40, -(2**40), 299, 300, 2**32, 150, 149, 1]).reshape(9, 1)
    check(case, scatter(300, index="i64"), {"a": 4}, [("o", 0)], None, far, None)


def test_scatter_that_sets(case):
    """Each position is written once: the order of updates cannot matter."""
    text = (
        scatter(24, op="add")
        .replace("%s = stablehlo.add %a, %b : tensor<f32>\n", "")
        .replace("stablehlo.return %s", "stablehlo.return %b")
    )
    i = np.array([0, 7, -1, 23, 24, 8, 16, 15, 12]).reshape(9, 1)
    for axis in (2, 3, 4):
        check(case, text, {"a": axis}, [("o", 0)], None, i, None, counts={})


def test_scatter_with_the_updates_tiled_as_well(case):
    """The operand counts once along the axis of the updates, and is tiled along the other."""
    c = case(scatter(24, updates=8), a=4, b=2)
    c.step(("o", 0, "a"))
    c.step(("u", 0, "b"))
    i = np.array(FAR[:8], np.int32).reshape(8, 1)
    drawn = c.inputs(0)
    c.inputs = lambda seed: [drawn[0], i, drawn[2]]
    assert c.counts() == {"all_reduce": 1}
    c.verify()


def test_scatter_by_two_components_both_tiled(case):
    text = """
func.func @main(%o: tensor<8x12xf32> loc("o"), %i: tensor<7x2xi32> loc("i"),
                %u: tensor<7xf32> loc("u")) -> tensor<8x12xf32> {
  %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1>,
      unique_indices = true, indices_are_sorted = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) : (tensor<8x12xf32>, tensor<7x2xi32>, tensor<7xf32>) -> tensor<8x12xf32>
  return %r : tensor<8x12xf32>
}"""
    i = np.array([[-1, 0], [0, 0], [3, 7], [4, 2], [11, 7], [12, 7], [5, 8]], np.int32)
    c = case(text, a=2, b=4)
    c.step(("o", 0, "a"), ("o", 1, "b"))
    drawn = c.inputs(0)
    c.inputs = lambda seed: [drawn[0], i, drawn[2]]
    assert c.counts() == {}
    c.verify()


def dynamic(kind, size, part, element="f32", index="i32"):
    x, u = f"tensor<{size}x3x{element}>", f"tensor<{part}x3x{element}>"
    if kind == "slice":
        body = f"stablehlo.dynamic_slice %x, %s, %t, sizes = [{part}, 3]"
        types, out = f"({x}, tensor<{index}>, tensor<{index}>) -> {u}", u
    else:
        body = "stablehlo.dynamic_update_slice %x, %u, %s, %t"
        types, out = f"({x}, {u}, tensor<{index}>, tensor<{index}>) -> {x}", x
    return f"""
func.func @main(%x: {x} loc("x"), %u: {u} loc("u"), %s: tensor<{index}> loc("s"),
                %t: tensor<{index}> loc("t")) -> ({out}, {u}) {{
  %r = {body} : {types}
  return %r, %u : {out}, {u}
}}"""


STARTS = [-100, -1, 0, 1, 5, 6, 11, 12, 17, 23, 24, 2147483647, -2147483648]


@pytest.mark.parametrize("kind", ["slice", "update"])
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("part", [1, 3, 7, 20])
def test_dynamic_slices_clamp_on_the_global_size(case, kind, mesh, part):
    """Slices shorter and longer than a tile, within one tile and across several."""
    counts = {"all_reduce": 1} if kind == "slice" else {}
    for start in STARTS[:: 1 if mesh == {"a": 4} else 3]:
        text = dynamic(kind, 24, part)
        check(case, text, mesh, [("x", 0)], None, None, start, 9, counts=counts, uneven=False)


@pytest.mark.parametrize("kind", ["slice", "update"])
@pytest.mark.parametrize(("size", "axis"), [(7, 2), (13, 4), (30, 8), (5, 4)])
def test_dynamic_slices_of_uneven_tiles(case, kind, size, axis):
    for start in (-2, 0, 3, size - 1, size + 5):
        for part in (1, 4):
            text = dynamic(kind, size, part)
            check(case, text, {"a": axis}, [("x", 0)], None, None, start, 0)


@pytest.mark.parametrize("kind", ["slice", "update"])
def test_dynamic_slices_of_every_type(case, kind):
    for element in ("bf16", "i32", "i8", "i1"):
        check(case, dynamic(kind, 24, 5, element), {"a": 4}, [("x", 0)], None, None, 10, 0)
    for index, starts in (("i8", (-128, 100, 127)), ("ui8", (200, 255)), ("i64", (2**40, 150))):
        for start in starts:
            text = dynamic(kind, 300, 5, index=index)
            check(case, text, {"a": 4}, [("x", 0)], None, None, start, 0)


BOTH = """
func.func @main(%x: tensor<8x12xf32> loc("x"), %u: tensor<3x5xf32> loc("u"),
                %s: tensor<i32> loc("s"), %t: tensor<i32> loc("t"))
    -> (tensor<8x12xf32>, tensor<3x5xf32>) {
  %r = stablehlo.dynamic_update_slice %x, %u, %s, %t
    : (tensor<8x12xf32>, tensor<3x5xf32>, tensor<i32>, tensor<i32>) -> tensor<8x12xf32>
  %d = stablehlo.dynamic_slice %x, %s, %t, sizes = [3, 5]
    : (tensor<8x12xf32>, tensor<i32>, tensor<i32>) -> tensor<3x5xf32>
  return %r, %d : tensor<8x12xf32>, tensor<3x5xf32>
}"""


@pytest.mark.parametrize("starts", [(0, 0), (2, 4), (7, 11), (-1, 5), (3, 1)])
def test_dynamic_slices_along_two_tiled_dimensions(case, starts):
    c = case(BOTH, a=2, b=3)
    c.step(("x", 0, "a"))
    c.step(("x", 1, "b"))
    drawn = c.inputs(0)
    c.inputs = lambda seed: [*drawn[:2], *(np.int32(s) for s in starts)]
    c.verify()


def test_an_update_takes_one_sliced_dimension_at_a_time(case):
    """The second is gathered: both at once have no rewrite."""
    c = case(BOTH, a=2, b=3)
    c.step(("x", 0, "a"))
    c.step(("x", 1, "b"))
    assert c.counts()["all_gather"] == 1


@pytest.mark.parametrize(("size", "axis"), [(12, 2), (12, 3), (12, 4), (13, 4), (7, 2), (3, 4)])
def test_one_element_of_a_tiled_dimension(case, size, axis):
    for at in {0, 1, size // 2, size - 1}:
        for element in ("f32", "bf16", "i32", "i1"):
            text = f"""
func.func @main(%x: tensor<{size}x3x{element}> loc("x")) -> tensor<1x2x{element}> {{
  %r = stablehlo.slice %x [{at}:{at + 1}:1, 0:3:2]
    : (tensor<{size}x3x{element}>) -> tensor<1x2x{element}>
  return %r : tensor<1x2x{element}>
}}"""
            check(case, text, {"a": axis}, [("x", 0)], counts={"all_reduce": 1})


def test_a_pending_sum_is_not_carried_through_a_masked_one(case):
    """Two sums over different axes: each is combined, none is lost."""
    text = """
func.func @main(%x: tensor<8x6xf32> loc("x"), %w: tensor<6x3xf32> loc("w"),
                %i: tensor<5xi32> loc("i")) -> tensor<5x3xf32> {
  %e = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8x6xf32>, tensor<6x3xf32>) -> tensor<8x3xf32>
  %r = "stablehlo.gather"(%e, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 3>}>
    : (tensor<8x3xf32>, tensor<5xi32>) -> tensor<5x3xf32>
  return %r : tensor<5x3xf32>
}"""
    c = case(text, a=4, b=2)
    c.step(("x", 0, "a"))
    c.step(("w", 0, "b"))
    assert c.counts() == {"all_reduce": 2}
    c.verify()


def test_a_tied_embedding(case):
    """The table by rows: looked up by a masked sum, and its gradient scattered into the tile."""
    text = """
func.func @main(%table: tensor<12x4xf32> loc("table"), %i: tensor<6xi32> loc("i"))
    -> (tensor<6x12xf32>, tensor<12x4xf32>) {
  %x = "stablehlo.gather"(%table, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 4>}> : (tensor<12x4xf32>, tensor<6xi32>) -> tensor<6x4xf32>
  %y = stablehlo.dot_general %x, %table, contracting_dims = [1] x [1]
    : (tensor<6x4xf32>, tensor<12x4xf32>) -> tensor<6x12xf32>
  %z = stablehlo.constant dense<0.0> : tensor<12x4xf32>
  %j = stablehlo.reshape %i : (tensor<6xi32>) -> tensor<6x1xi32>
  %g = "stablehlo.scatter"(%z, %j, %x) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) : (tensor<12x4xf32>, tensor<6x1xi32>, tensor<6x4xf32>) -> tensor<12x4xf32>
  %h = stablehlo.add %g, %table : tensor<12x4xf32>
  return %y, %h : tensor<6x12xf32>, tensor<12x4xf32>
}"""
    c = case(text, a=4)
    c.step(("table", 0, "a"))
    assert c.counts() == {"all_reduce": 1}
    c.verify()
    c = case(text, a=2, b=3)
    c.step(("i", 0, "a"))
    c.step(("table", 0, "b"))
    c.verify()
