// RUN: partir-opt %s -p partir-loops --split-input-file --verify-diagnostics | filecheck %s

// CHECK: nest form is needed (partir.form = "nests"), got: None
module attributes {partir.mesh = #partir.mesh<"model"=2>} {}

// -----

// The minor factor of a dimension, while the major one is whole, is every other element: no slice.

// CHECK: model.py:3:1: stablehlo.reshape: the tiles of this nest entry are no slices: model: j
module attributes {partir.mesh = #partir.mesh<"model"=2>, partir.form = "nests"} {
  func.func @main(%x: tensor<3x4xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<12xf32> {partir.nest = #partir.nest<[]>}) {
    %0 = stablehlo.reshape %x {partir.nest = #partir.nest<[model: j]>} : (tensor<3x4xf32>) -> tensor<12xf32> loc("model.py":3:1)
    return %0 : tensor<12xf32>
  }
}

// -----

// The sum is used by others before the loop that makes it can stand.

// CHECK: stablehlo.dot_general: its pending sum is used before all of it has been made
module attributes {partir.mesh = #partir.mesh<"model"=2>, partir.form = "nests"} {
  func.func @main(%x: tensor<4x8xf32> {partir.nest = #partir.nest<[]>}, %w: tensor<8x8xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<4x8xf32> {partir.nest = #partir.nest<[]>}) {
    %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {partir.nest = #partir.nest<[model: k]>} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %t = stablehlo.tanh %a {partir.nest = #partir.nest<[]>} : tensor<4x8xf32>
    %b = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0] {partir.nest = #partir.nest<[model: k]>} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %c = stablehlo.add %a, %b {partir.nest = #partir.nest<[model: pending add]>} : tensor<4x8xf32>
    return %c : tensor<4x8xf32>
  }
}
