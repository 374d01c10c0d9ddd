"""Sizes that do not divide: padded at the tail, masked where the padding could be seen.

Inputs are padded with NaN, so that any use of padding shows in the result.
"""

from __future__ import annotations

import pytest

SIZES = [(7, 2), (7, 4), (13, 4), (13, 8), (30, 4), (30, 8), (3, 4), (1, 2)]


def chain(n: int) -> str:
    return f"""
func.func @main(%x: tensor<{n}x6xf32> loc("x"), %w: tensor<6x{n}xf32> loc("w"),
                %v: tensor<{n}x5xf32> loc("v")) -> (tensor<{n}x5xf32>, tensor<f32>) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<{n}x6xf32>, tensor<6x{n}xf32>) -> tensor<{n}x{n}xf32>
  %t = stablehlo.tanh %h : tensor<{n}x{n}xf32>
  %y = stablehlo.dot_general %t, %v, contracting_dims = [1] x [0]
    : (tensor<{n}x{n}xf32>, tensor<{n}x5xf32>) -> tensor<{n}x5xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<{n}x5xf32>, tensor<f32>) -> tensor<f32>
  return %y, %s : tensor<{n}x5xf32>, tensor<f32>
}}"""


@pytest.mark.parametrize(("size", "axis"), SIZES)
def test_batch_and_contraction(case, size, axis):
    c = case(chain(size), a=axis)
    c.step(("x", 0, "a"))
    c.verify()
    c = case(chain(size), a=axis)
    c.step(("w", 1, "a"))
    c.verify()


@pytest.mark.parametrize(("size", "axis"), SIZES[:6])
def test_both_on_two_axes(case, size, axis):
    c = case(chain(size), a=2, b=axis)
    c.step(("x", 0, "b"))
    c.step(("w", 1, "a"))
    plan = c.verify()
    assert plan.counts()["all_reduce"]["count"] == 2


@pytest.mark.parametrize("reducer", ["add", "maximum", "minimum", "multiply"])
def test_reductions_mask_with_the_identity(case, reducer):
    init = {"add": "0.0", "maximum": "0xFF800000", "minimum": "0x7F800000", "multiply": "1.0"}
    c = case(
        f"""
func.func @main(%x: tensor<13x3xf32> loc("x")) -> tensor<3xf32> {{
  %i = stablehlo.constant dense<{init[reducer]}> : tensor<f32>
  %r = stablehlo.reduce(%x init: %i) applies stablehlo.{reducer} across dimensions = [0]
    : (tensor<13x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}}""",
        a=4,
    )
    c.step(("x", 0, "a"))
    assert c.counts() == {"all_reduce": 1}
    c.verify()


def test_scatter_of_a_padded_number_of_updates(case):
    c = case(
        """
func.func @main(%o: tensor<5x3xf32> loc("o"), %i: tensor<7x1xi32> loc("i"),
                %u: tensor<7x3xf32> loc("u")) -> tensor<5x3xf32> {
  %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) : (tensor<5x3xf32>, tensor<7x1xi32>, tensor<7x3xf32>) -> tensor<5x3xf32>
  return %r : tensor<5x3xf32>
}""",
        a=4,
    )
    c.step(("u", 0, "a"))
    assert c.counts() == {"all_reduce": 1}
    c.verify()


@pytest.mark.parametrize(("size", "axis"), SIZES)
def test_gathers_lose_the_padding_and_exchanges_keep_the_order(case, size, axis):
    text = f"""
func.func @main(%x: tensor<{size}x{size}xf32> loc("x"), %e: tensor<{size}x{size}xf32> loc("e"))
    -> tensor<{size}x{size}xf32> {{
  %h = stablehlo.tanh %x : tensor<{size}x{size}xf32>
  %y = stablehlo.multiply %h, %e : tensor<{size}x{size}xf32>
  return %y : tensor<{size}x{size}xf32>
}}"""
    for other, kinds in (("replicate", {"all_gather"}), (1, {"all_to_all"})):
        c = case(text, a=axis)
        c.session.begin("stop")
        c.session.stop(c.value("h"), "a")
        c.step(("x", 0, "a"))
        if other == 1:
            c.step(("e", 1, "a"))
        if size > 1:
            assert set(c.counts()) == kinds, other
        c.verify()


def test_reduce_scatter_into_uneven_tiles(case):
    c = case(
        """
func.func @main(%x: tensor<8x7xf32> loc("x"), %y: tensor<8x5xf32> loc("y"),
                %m: tensor<7x5xf32> loc("m")) -> tensor<7x5xf32> {
  %g = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
    : (tensor<8x7xf32>, tensor<8x5xf32>) -> tensor<7x5xf32>
  %r = stablehlo.add %m, %g : tensor<7x5xf32>
  return %r : tensor<7x5xf32>
}""",
        a=4,
    )
    c.step(("x", 0, "a"))
    c.step(("m", 0, "a"))
    assert c.counts() == {"reduce_scatter": 1}
    c.verify()


def test_a_second_axis_divides_or_is_refused(case):
    c = case(chain(13), a=2, b=2)
    assert c.step(("x", 0, "a")) == ["done"]
    assert c.session.local_shape(c.value("x")) == (7, 6)
    assert c.step(("x", 0, "b")) == ["refused"]
    c = case(chain(14), a=4, b=2)
    c.step(("x", 0, "a"))
    assert c.step(("x", 0, "b")) == ["done"]
    c.verify()


def test_an_uneven_iota_and_a_reshape(case):
    text = """
func.func @main(%x: tensor<7xi32> loc("x")) -> (tensor<7xi32>, tensor<14xi32>) {
  %i = stablehlo.iota dim = 0 : tensor<7xi32>
  %y = stablehlo.add %x, %i : tensor<7xi32>
  %b = stablehlo.broadcast_in_dim %y, dims = [0] : (tensor<7xi32>) -> tensor<7x2xi32>
  %r = stablehlo.reshape %b : (tensor<7x2xi32>) -> tensor<14xi32>
  return %y, %r : tensor<7xi32>, tensor<14xi32>
}"""
    c = case(text, a=4)
    c.step(("x", 0, "a"))
    c.verify()


def test_uneven_tiles_of_tiles_are_gathered_whole(case):
    """4 elements on 3 x 2 tiles of 1 are no tiles over 2: the way back goes by the whole."""
    c = case(
        """
func.func @main(%x: tensor<4xf32> loc("x")) -> tensor<4xf32> {
  %y = stablehlo.tanh %x : tensor<4xf32>
  %z = stablehlo.negate %y : tensor<4xf32>
  return %z : tensor<4xf32>
}""",
        a=2,
        b=3,
    )
    c.session.begin("stop")
    for axis in ("a", "b"):
        c.session.stop(c.value("y"), axis)
    assert c.step(("z", 0, "b"), ("x", 0, "a")) == ["done", "done"]
    c.session.begin("more")
    c.session.tile(c.value("z"), 0, "a")
    c.session.propagate()
    c.verify()


def test_equal_tiles_of_an_iota_may_be_gathered(case):
    c = case(
        """
func.func @main(%x: tensor<4x8xf32> loc("x")) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %i = stablehlo.iota dim = 0 : tensor<4x8xf32>
  %y = stablehlo.add %x, %i : tensor<4x8xf32>
  %o = stablehlo.constant dense<1.0> : tensor<4x8xf32>
  %r = stablehlo.reduce(%o init: %z) applies stablehlo.add across dimensions = [1]
    : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %i, %r : tensor<4x8xf32>, tensor<4xf32>
}""",
        a=2,
    )
    c.session.begin("test")
    c.session.tile(c.value("i"), 1, "a")
    c.session.tile(c.value("o"), 1, "a")
    c.session.propagate()
    c.session.replicate(c.value("i"), "a")
    c.verify()
