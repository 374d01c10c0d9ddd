"""Ops that look across the border of their tile: what they receive, and that it is enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partir.engine.check import PlanTypeError, check_plan
from partir.engine.exchange import Slide, pieces
from partir.engine.plan import Compute, Reshard
from partir.partir_dialect.printer import print_module
from partir.passes.lower_to_spmd import lower_to_spmd

MESHES = [{"a": 2}, {"a": 3}, {"a": 4}, {"a": 8}, {"a": 2, "b": 2}]


def check(case, text, mesh, dim=0, name="x", seed=0, gathered=False):
    """Tiles one dimension along all axes; everything that is exchanged is a permute, or, when
    `gathered`, nothing is."""
    c = case(text, **mesh)
    for axis in mesh:
        assert c.step((name, dim, axis)) == ["done"]
    counts = c.counts()
    if gathered:
        assert "all_gather" in counts
        assert "collective_permute" not in counts
    else:
        assert set(counts) <= {"collective_permute"}, counts
    printed = counts.get("collective_permute", 0)
    plan = c.session.plan()
    c.verify(seed)
    lowered = case(text, **mesh)
    for axis in mesh:
        lowered.step((name, dim, axis))
    lower_to_spmd(lowered.source, lowered.session.plan(), lowered.mesh)
    assert print_module(lowered.source.module).count("partir.collective_permute") == printed
    return plan


def unary(op, size, out, element="f32", extra="", width=3):
    x, y = f"tensor<{size}x{width}x{element}>", f"tensor<{out}x{width}x{element}>"
    return f"""
func.func @main(%x: {x} loc("x"), %p: tensor<{element}> loc("p")) -> {y} {{
  %r = {op} : ({x}{extra}) -> {y}
  return %r : {y}
}}"""


def slice_(size, start, limit, stride=1, element="f32"):
    out = -(-(limit - start) // stride)
    return unary(f"stablehlo.slice %x [{start}:{limit}:{stride}, 0:3:1]", size, out, element)


SLICES = [(24, 0, 12, 1), (24, 12, 24, 1), (24, 5, 17, 1), (24, 0, 24, 2), (24, 1, 24, 2),
          (48, 3, 37, 3), (48, 7, 47, 5), (24, 11, 23, 1)]  # fmt: skip


@pytest.mark.parametrize("case_", SLICES)
@pytest.mark.parametrize("axis", [2, 4])
def test_slices(case, case_, axis):
    size, start, limit, stride = case_
    out = -(-(limit - start) // stride)
    if out % axis == 0 and size % axis == 0:
        check(case, slice_(size, start, limit, stride), {"a": axis})


def test_slices_on_more_meshes_and_types(case):
    for mesh in MESHES:
        check(case, slice_(48, 11, 35), mesh)
    for element in ("bf16", "i8", "i1", "i32"):
        check(case, slice_(48, 11, 35, element=element), {"a": 4})


def pad(size, low, high, interior=0, element="f32"):
    out = low + high + size + (size - 1) * interior
    return out, unary(
        f"stablehlo.pad %x, %p, low = [{low}, 0], high = [{high}, 0], interior = [{interior}, 0]",
        size,
        out,
        element,
        f", tensor<{element}>",
    )


@pytest.mark.parametrize("axis", [2, 3, 4, 8])
@pytest.mark.parametrize(
    ("size", "low", "high", "interior"),
    [(24, 24, 0, 0), (24, 0, 24, 0), (24, 5, 19, 0), (24, -12, 12, 0), (24, 12, -12, 0),
     (24, -1, 1, 0), (24, 1, -1, 0), (24, 0, 1, 1), (24, 1, 0, 1), (24, 2, 0, 2), (24, -3, 4, 1),
     (24, 100, 20, 0), (24, 7, -7, 0), (48, -13, -11, 0)],
)  # fmt: skip
def test_pads(case, size, low, high, interior, axis):
    out, text = pad(size, low, high, interior)
    if out % axis == 0:
        check(case, text, {"a": axis})


def test_a_pad_that_differs_from_tile_to_tile_is_gathered(case):
    """Three positions of the result for one of the operand, which lie two apart."""
    check(case, pad(24, -3, 28, 1)[1], {"a": 4}, gathered=True)


def test_pads_of_types_and_along_two_axes(case):
    for element in ("bf16", "i8", "i1", "i32"):
        check(case, pad(24, 5, 19, element=element)[1], {"a": 4})
    check(case, pad(24, 5, 19)[1], {"a": 2, "b": 2})
    check(case, pad(24, 5, 19)[1], {"b": 3, "a": 2})


def test_a_pad_of_one_element_tiled_at_its_result(case):
    _, text = pad(1, 5, 6)
    for axis in (2, 3, 4):
        c = case(text, a=axis)
        c.session.begin("result")
        assert c.session.tile(c.value("r"), 0, "a").done
        assert c.counts() == {"all_gather": 1}  # of the result
        c.verify()


def concatenate(sizes, element="f32"):
    types = [f"tensor<{n}x3x{element}>" for n in sizes]
    out = f"tensor<{sum(sizes)}x3x{element}>"
    args = ", ".join(f'%x{k}: {t} loc("x{k}")' for k, t in enumerate(types))
    names = ", ".join(f"%x{k}" for k in range(len(sizes)))
    return f"""
func.func @main({args}) -> {out} {{
  %r = stablehlo.concatenate {names}, dim = 0 : ({", ".join(types)}) -> {out}
  return %r : {out}
}}"""


@pytest.mark.parametrize("sizes", [(24, 24), (24, 48), (48, 24, 24), (24, 24, 24), (48, 0, 48)])
@pytest.mark.parametrize("mesh", MESHES)
def test_concatenations(case, sizes, mesh):
    check(case, concatenate(sizes), mesh, name="x0")


def test_concatenations_of_types_and_of_single_elements(case):
    for element in ("bf16", "i8", "i1"):
        check(case, concatenate((16, 8), element), {"a": 4}, name="x0")
    c = case(concatenate((1, 1, 1, 1)), a=4)
    c.session.begin("result")
    assert c.session.tile(c.value("r"), 0, "a").done
    assert c.counts() == {"all_gather": 1}  # of the result
    c.verify()


def test_two_halves_need_two_rounds_each(case):
    """Tile t of the result is two tiles of one operand, however many devices there are."""
    for axis in (4, 8):
        plan = check(case, concatenate((24, 24)), {"a": axis}, name="x0")
        assert plan.counts()["collective_permute"]["count"] == 4


@pytest.mark.parametrize("mesh", MESHES)
def test_reverse_is_one_permute(case, mesh):
    text = unary("stablehlo.reverse %x, dims = [0, 1]", 24, 24).replace(
        "(tensor<24x3xf32>) -> tensor<24x3xf32>", "tensor<24x3xf32>"
    )
    plan = check(case, text, mesh)
    tile = 24 * 12 // int(np.prod([*mesh.values()]))
    assert plan.counts()["collective_permute"] == {"count": 1, "bytes": tile, "ring_bytes": tile}


def window(size, width, stride, low, high, dilation=1, base=1, op="add", init="0.0"):
    wide = (size - 1) * base + 1 + low + high
    out = (wide - ((width - 1) * dilation + 1)) // stride + 1
    return (
        out,
        f"""
func.func @main(%x: tensor<{size}x3xf32> loc("x")) -> tensor<{out}x3xf32> {{
  %i = stablehlo.constant dense<{init}> : tensor<f32>
  %r = "stablehlo.reduce_window"(%x, %i) <{{window_dimensions = array<i64: {width}, 1>,
      window_strides = array<i64: {stride}, 1>, window_dilations = array<i64: {dilation}, 1>,
      base_dilations = array<i64: {base}, 1>,
      padding = dense<[[{low}, {high}], [0, 0]]> : tensor<2x2xi64>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.{op} %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }}) : (tensor<{size}x3xf32>, tensor<f32>) -> tensor<{out}x3xf32>
  return %r : tensor<{out}x3xf32>
}}""",
    )


WINDOWS = [
    dict(size=24, width=3, stride=1, low=1, high=1),
    dict(size=24, width=2, stride=1, low=0, high=1),
    dict(size=24, width=3, stride=2, low=0, high=1),
    dict(size=24, width=3, stride=2, low=1, high=0),
    dict(size=48, width=5, stride=3, low=2, high=0),
    dict(size=24, width=3, stride=1, low=3, high=3, dilation=3),
    dict(size=24, width=3, stride=1, low=1, high=2, base=2),
    dict(size=24, width=2, stride=2, low=1, high=1, base=2),
    dict(size=24, width=9, stride=1, low=4, high=4),
    dict(size=24, width=13, stride=1, low=12, high=0),
    dict(size=24, width=3, stride=1, low=13, high=13),
    dict(size=24, width=3, stride=1, low=-5, high=7),
]


@pytest.mark.parametrize("how", WINDOWS, ids=str)
@pytest.mark.parametrize("axis", [2, 3, 4, 8])
def test_reduce_windows(case, how, axis):
    out, text = window(**how)
    if out % axis == 0:
        check(case, text, {"a": axis})


def test_windows_that_see_only_holes_are_gathered(case):
    out, text = window(25, 1, 2, 1, 0, base=2)
    assert out == 25
    check(case, text, {"a": 5}, gathered=True)


def test_reduce_windows_with_other_bodies_and_inits(case):
    """The padding is the initial value, which counts in every window."""
    for op, init in (
        ("maximum", "0xFF800000"),
        ("minimum", "7.0"),
        ("add", "2.0"),
        ("multiply", "0.5"),
    ):
        for mesh in ({"a": 4}, {"a": 2, "b": 3}):
            _, text = window(24, 3, 2, 1, 0, op=op, init=init)
            check(case, text, mesh)


def test_a_halo_is_as_wide_as_the_window_reaches(case):
    _, text = window(24, 3, 1, 1, 1)
    c = case(text, a=4)
    c.step(("x", 0, "a"))
    halos = [s for s in c.session.plan().reshards if s.move.halo]
    assert [s.bytes for s in halos] == [12, 12]
    assert all(len(s.move.halo.pairs) == 3 for s in halos)
    (op,) = [s for s in c.session.plan().steps if isinstance(s, Compute) and s.halos]
    assert set(op.halos) == {s.target for s in halos}


def convolution(
    size, kernel, stride=1, low=0, high=0, dilation=1, base=1, groups=1, batches=1, turned="false",
    batch=4, features=4, made=8,
):  # fmt: skip
    wide = (size - 1) * base + 1 + low + high
    out = (wide - ((kernel - 1) * dilation + 1)) // stride + 1
    x = f"tensor<{batch}x{size}x{features}xf32>"
    w = f"tensor<{kernel}x{features // groups}x{made}xf32>"
    y = f"tensor<{batch // batches}x{out}x{made}xf32>"
    return (
        out,
        f"""
func.func @main(%x: {x} loc("x"), %w: {w} loc("w")) -> {y} {{
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {{stride = [{stride}], pad = [[{low}, {high}]], lhs_dilate = [{base}],
    rhs_dilate = [{dilation}], reverse = [{turned}]}}
    {{batch_group_count = {batches} : i64, feature_group_count = {groups} : i64}}
    : ({x}, {w}) -> {y}
  return %r : {y}
}}""",
    )


SPATIAL = [
    dict(size=24, kernel=3, low=1, high=1),
    dict(size=24, kernel=3, low=1, high=1, turned="true"),
    dict(size=24, kernel=2, low=1, high=0),
    dict(size=24, kernel=3, stride=2, low=0, high=1),
    dict(size=24, kernel=4, stride=2, low=1, high=1),
    dict(size=48, kernel=5, stride=3, low=1, high=1),
    dict(size=24, kernel=3, low=2, high=2, dilation=2),
    dict(size=24, kernel=3, low=1, high=2, base=2),
    dict(size=24, kernel=4, low=2, high=2, base=2, turned="true"),
    dict(size=24, kernel=3, stride=2, low=2, high=2, base=2, dilation=2),
    dict(size=24, kernel=3, low=1, high=1, groups=2),
    dict(size=24, kernel=3, low=1, high=1, groups=4),
    dict(size=24, kernel=3, low=1, high=1, batches=2),
    dict(size=24, kernel=1, stride=2, low=1, high=0),
    dict(size=24, kernel=15, low=7, high=7),
    dict(size=24, kernel=3, low=-3, high=5),
]


@pytest.mark.parametrize("how", SPATIAL, ids=str)
@pytest.mark.parametrize("axis", [2, 3, 4])
def test_convolutions_in_space(case, how, axis):
    out, text = convolution(**how)
    if out % axis == 0:
        check(case, text, {"a": axis}, dim=1)


@pytest.mark.parametrize("how", SPATIAL, ids=str)
def test_convolutions_in_batch_features_and_groups(case, how):
    """Never retyped wrongly: whatever can be tiled of a convolution with groups and windows."""
    for name, dim in (("x", 0), ("x", 2), ("w", 1), ("w", 2), ("w", 0)):
        for mesh in ({"a": 2}, {"a": 4}, {"a": 2, "b": 2}, {"a": 3}):
            c = case(convolution(**how)[1], **mesh)
            for axis in mesh:
                c.step((name, dim, axis))
            c.verify(rtol=1e-3)


def test_groups_are_divided_and_nothing_is_gathered(case):
    for groups, batches in ((4, 1), (1, 4), (2, 1), (1, 2)):
        _, text = convolution(6, 3, groups=groups, batches=batches, made=8)
        name = ("x", 2 if groups > 1 else 0)
        for axis in (2, 4):
            if max(groups, batches) % axis == 0:
                c = case(text, a=axis)
                c.step((*name, "a"))
                c.step(("w", 2, "a"))
                assert c.counts() == {}
                c.verify()


def test_groups_that_do_not_divide(case):
    """Seven groups of one feature on two and four devices: padded groups stay apart."""
    _, text = convolution(6, 3, groups=7, features=7, made=7)
    for axis in (2, 4):
        c = case(text, a=axis)
        assert c.step(("x", 2, "a")) == ["done"]
        c.verify()


def test_one_spatial_dimension_at_a_time(case):
    """Corners would need a second exchange: the other dimension is gathered."""
    text = """
func.func @main(%x: tensor<2x8x8x3xf32> loc("x"), %w: tensor<3x3x3x4xf32> loc("w"))
    -> tensor<2x8x8x4xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1],
    reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x8x8x4xf32>
  return %r : tensor<2x8x8x4xf32>
}"""
    c = case(text, a=2, b=4)
    c.step(("x", 1, "a"))
    c.step(("x", 2, "b"))
    c.step(("x", 0, "a"))
    assert c.counts() == {"all_gather": 1, "collective_permute": 2}
    c.verify()


def test_a_pending_sum_crosses_an_exchange(case):
    """Partial values over one axis, sliced and padded along a dimension of another."""
    t = "tensor<24x8xf32>"
    dot = f": ({t}, tensor<8x8xf32>) -> {t}"
    text = f"""
func.func @main(%x: {t} loc("x"), %w: tensor<8x8xf32> loc("w"), %y: {t} loc("y"),
                %v: tensor<8x8xf32> loc("v")) -> {t} {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {dot}
  %q = stablehlo.dot_general %y, %v, contracting_dims = [1] x [0] {dot}
  %s = stablehlo.pad %p, %z, low = [5, 0], high = [-5, 0], interior = [0, 0]
    : ({t}, tensor<f32>) -> {t}
  %r = stablehlo.add %s, %q : {t}
  return %r : {t}
}}"""
    c = case(text, a=4, b=2)
    c.step(("x", 0, "a"))
    c.step(("w", 0, "b"), ("v", 0, "b"))
    counts = c.counts()
    assert counts["all_reduce"] == 1
    assert counts["collective_permute"] >= 1
    c.verify()


def test_an_exchange_in_a_loop_counts_for_every_iteration(case):
    text = """
func.func @main(%x: tensor<16x3xf32> loc("x")) -> tensor<16x3xf32> {
  %n = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r:2 = stablehlo.while(%i = %n, %c = %x) : tensor<i32>, tensor<16x3xf32>
  cond {
    %m = stablehlo.constant dense<5> : tensor<i32>
    %t = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %d = stablehlo.pad %c, %z, low = [1, 0], high = [-1, 0], interior = [0, 0]
      : (tensor<16x3xf32>, tensor<f32>) -> tensor<16x3xf32>
    stablehlo.return %j, %d : tensor<i32>, tensor<16x3xf32>
  }
  return %r#1 : tensor<16x3xf32>
}"""
    c = case(text, a=4)
    c.step(("x", 0, "a"))
    assert c.counts() == {"collective_permute": 5}
    c.verify()


def test_an_exchange_comes_before_a_mask(case):
    """What is received of other tiles has padding in its features, as a device's own part has."""
    for features, feature_axis in ((3, 2), (5, 4)):
        text = convolution(24, 3, low=1, high=1, features=features)[1]
        for order in (("x", 1, "a"), ("w", 1, "b")), (("w", 1, "b"), ("x", 1, "a")):
            c = case(text, a=3, b=feature_axis)
            for tile in order:
                c.step(tile)
            assert c.counts() == {"all_reduce": 1, "collective_permute": 2}
            c.verify()


def test_a_plan_that_misses_a_piece_is_ill_typed(case):
    _, text = window(24, 3, 1, 1, 1)
    c = case(text, a=4)
    c.step(("x", 0, "a"))
    plan = c.session.plan()
    check_plan(plan)
    (at,) = [n for n, s in enumerate(plan.steps) if isinstance(s, Compute) and s.halos]
    whole = plan.steps[at]
    plan.steps[at] = replace(whole, halos=whole.halos[:1])
    with pytest.raises(PlanTypeError, match="a part of another tile is missing"):
        check_plan(plan)
    plan.steps[at] = whole
    reshards = [n for n, s in enumerate(plan.steps) if isinstance(s, Reshard)]
    step = plan.steps[reshards[0]]
    halo = replace(step.move.halo, pairs=((0, 1), (0, 2)))
    plan.steps[reshards[0]] = replace(step, move=replace(step.move, halo=halo))
    with pytest.raises(PlanTypeError, match="sends and receives at most once"):
        check_plan(plan)


def test_permutes_that_come_from_an_exchange_have_each_device_send_once():
    """Whatever the sizes: every tile gets all that it reads, and nothing is sent twice."""
    generator = np.random.default_rng(0)
    for _ in range(300):
        tiles = int(generator.choice([2, 3, 4, 8]))
        tile, out = (int(n) for n in generator.integers(1, 7, 2))
        slide = Slide(
            0, 0, tile * tiles, out * tiles, True,
            int(generator.integers(-9, 9)), int(generator.integers(1, 4)),
            int(generator.integers(1, 5)), int(generator.integers(1, 3)),
        )  # fmt: skip
        step, first, width = slide.reads(tiles)
        held = [set() for _ in range(tiles)]
        for piece in pieces(slide, tiles):
            assert 0 <= piece.start < piece.start + piece.size <= tile
            for side in zip(*piece.pairs, strict=True):
                assert len(set(side)) == len(side)
            for s, t in piece.pairs or [(t, t) for t in range(tiles)]:
                begin = s * tile + piece.start
                if piece.places[t] is not None:
                    assert piece.places[t] == begin - (t * step + first)
                    held[t].update(range(begin, begin + piece.size))
        for t in range(tiles):
            low, high = t * step + first, t * step + first + width
            assert held[t].issuperset(range(max(0, low), min(high, slide.source)))
            taps = [
                o * slide.stride - slide.low + k * slide.dilation
                for o in range(t * out, (t + 1) * out)
                for k in range(slide.size)
            ]
            assert (min(taps), max(taps) + 1) == (low, high)


def test_uneven_tiles_are_gathered_for_an_exchange(case):
    """Where a tile ends in padding, what lies beyond it is not what its neighbour begins with."""
    reverse = unary("stablehlo.reverse %x, dims = [0]", 13, 13).replace(
        "(tensor<13x3xf32>) -> tensor<13x3xf32>", "tensor<13x3xf32>"
    )
    for text in (pad(13, 1, -1)[1], reverse, window(13, 3, 1, 1, 1)[1], slice_(13, 0, 12)):
        for axis in (2, 4):
            check(case, text, {"a": axis}, gathered=True)
    for axis in (2, 4):
        check(case, convolution(13, 3, low=1, high=1)[1], {"a": axis}, dim=1, gathered=True)
        check(case, concatenate((13, 13)), {"a": axis}, name="x0", gathered=True)
