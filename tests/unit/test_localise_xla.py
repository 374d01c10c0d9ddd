"""Do local rewrites compute the same on XLA as in the simulator? A sample of each."""

from __future__ import annotations

import numpy as np
import pytest

from partir.partir_dialect.printer import print_module
from partir.runtime.xla import run_on_xla

T, X = "tensor<8x3xf32>", '%x: tensor<24x3xf32> loc("x")'
ADD = """({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  })"""

GATHER = f"""
func.func @main({X}, %i: tensor<8xi32> loc("i")) -> {T} {{
  %r = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 3>}}> : (tensor<24x3xf32>, tensor<8xi32>) -> {T}
  return %r : {T}
}}"""

SCATTER = f"""
func.func @main({X}, %i: tensor<8x1xi32> loc("i"), %u: {T} loc("u")) -> tensor<24x3xf32> {{
  %r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}}> {ADD}
    : (tensor<24x3xf32>, tensor<8x1xi32>, {T}) -> tensor<24x3xf32>
  return %r : tensor<24x3xf32>
}}"""

STARTS = """
func.func @main(%x: tensor<24x3xf32> loc("x"), %u: tensor<7x3xf32> loc("u"),
                %s: tensor<i32> loc("s")) -> (tensor<24x3xf32>, tensor<7x3xf32>) {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.dynamic_update_slice %x, %u, %s, %z
    : (tensor<24x3xf32>, tensor<7x3xf32>, tensor<i32>, tensor<i32>) -> tensor<24x3xf32>
  %d = stablehlo.dynamic_slice %x, %s, %z, sizes = [7, 3]
    : (tensor<24x3xf32>, tensor<i32>, tensor<i32>) -> tensor<7x3xf32>
  return %r, %d : tensor<24x3xf32>, tensor<7x3xf32>
}"""

MOVES = """
func.func @main(%x: tensor<24x3xf32> loc("x"), %p: tensor<f32> loc("p"))
    -> (tensor<12x3xf32>, tensor<48x3xf32>, tensor<24x3xf32>, tensor<48x3xf32>) {
  %a = stablehlo.slice %x [5:17:1, 0:3:1] : (tensor<24x3xf32>) -> tensor<12x3xf32>
  %b = stablehlo.pad %x, %p, low = [1, 0], high = [0, 0], interior = [1, 0]
    : (tensor<24x3xf32>, tensor<f32>) -> tensor<48x3xf32>
  %c = stablehlo.reverse %x, dims = [0] : tensor<24x3xf32>
  %d = stablehlo.concatenate %c, %x, dim = 0
    : (tensor<24x3xf32>, tensor<24x3xf32>) -> tensor<48x3xf32>
  return %a, %b, %c, %d
    : tensor<12x3xf32>, tensor<48x3xf32>, tensor<24x3xf32>, tensor<48x3xf32>
}"""

WINDOWS = f"""
func.func @main({X}, %w: tensor<3x3x8xf32> loc("w"), %v: tensor<3x1x3xf32> loc("v"))
    -> (tensor<12x3xf32>, tensor<1x24x8xf32>, tensor<1x24x3xf32>) {{
  %z = stablehlo.constant dense<2.0> : tensor<f32>
  %a = "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: 3, 1>,
      window_strides = array<i64: 2, 1>,
      padding = dense<[[1, 0], [0, 0]]> : tensor<2x2xi64>}}> {ADD}
    : (tensor<24x3xf32>, tensor<f32>) -> tensor<12x3xf32>
  %y = stablehlo.reshape %x : (tensor<24x3xf32>) -> tensor<1x24x3xf32>
  %b = stablehlo.convolution(%y, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {{stride = [1], pad = [[2, 2]], lhs_dilate = [1], rhs_dilate = [2], reverse = [false]}}
    {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
    : (tensor<1x24x3xf32>, tensor<3x3x8xf32>) -> tensor<1x24x8xf32>
  %c = stablehlo.convolution(%y, %v) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {{stride = [2], pad = [[2, 1]], lhs_dilate = [2], rhs_dilate = [1], reverse = [true]}}
    {{batch_group_count = 1 : i64, feature_group_count = 3 : i64}}
    : (tensor<1x24x3xf32>, tensor<3x1x3xf32>) -> tensor<1x24x3xf32>
  return %a, %b, %c : tensor<12x3xf32>, tensor<1x24x8xf32>, tensor<1x24x3xf32>
}}"""

FAR = np.array([0, 7, -1, 23, 24, 2147483647, -2147483648, 12], np.int32)


@pytest.mark.parametrize("mesh", [{"a": 4}, {"a": 2, "b": 3}], ids=str)
@pytest.mark.parametrize(
    ("text", "given"),
    [
        (GATHER, {1: FAR}),
        (SCATTER, {1: FAR.reshape(8, 1)}),
        (STARTS, {2: np.int32(10)}),
        (STARTS, {2: np.int32(-3)}),
        (STARTS, {2: np.int32(22)}),
        (MOVES, {}),
        (WINDOWS, {}),
    ],
    ids=["gather", "scatter", "within", "before", "behind", "moves", "windows"],
)
def test_on_xla(case, text, given, mesh):
    c = case(text, **mesh)
    for axis in mesh:
        assert c.step(("x", 0, axis)) == ["done"]
    assert "all_gather" not in c.counts()
    drawn = [given.get(k, x) for k, x in enumerate(c.inputs(0))]
    c.inputs = lambda seed: drawn
    c.verify(on=lambda module, mesh, inputs: run_on_xla(print_module(module), mesh, inputs))
