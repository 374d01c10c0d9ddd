// RUN: partir-opt %s -p partir-propagate | filecheck %s

// Inference runs forward through the product and backward on to the second weight.

module attributes {partir.form = "nests", partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  // CHECK: %w1: tensor<8x16xf32> {partir.nest = #partir.nest<[model: j]>}
  // CHECK-SAME: %w2: tensor<16x8xf32> {partir.nest = #partir.nest<[model: i]>}
  // CHECK-SAME: -> (tensor<256x8xf32> {partir.nest = #partir.nest<[batch: i]>})
  func.func @main(%x: tensor<256x8xf32> {partir.nest = #partir.nest<[batch: i]>}, %w1: tensor<8x16xf32> {partir.nest = #partir.nest<[model: j]>}, %w2: tensor<16x8xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<256x8xf32> {partir.nest = #partir.nest<[]>}) {
    // CHECK: stablehlo.dot_general %x, %w1, {{.*}}{partir.nest = #partir.nest<[batch: i, model: j]>}
    %h = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] {partir.nest = #partir.nest<[]>} : (tensor<256x8xf32>, tensor<8x16xf32>) -> tensor<256x16xf32>
    // CHECK: stablehlo.dot_general %h, %w2, {{.*}}{partir.nest = #partir.nest<[batch: i, model: k]>}
    %y = stablehlo.dot_general %h, %w2, contracting_dims = [1] x [0] {partir.nest = #partir.nest<[]>} : (tensor<256x16xf32>, tensor<16x8xf32>) -> tensor<256x8xf32>
    return %y : tensor<256x8xf32>
  }
}
