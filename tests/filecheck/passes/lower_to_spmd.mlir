// RUN: partir-opt %s -p partir-lower-to-spmd --split-input-file | filecheck %s

// Types are local, the partial product is reduced, the border says where the tiles belong.

// CHECK: module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>}
module attributes {partir.form = "nests", partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  // CHECK: %x: tensor<64x4xf32> {partir.border = "arg0: 256x8xf32 [{batch}, {model}]"}
  // CHECK-SAME: %w: tensor<4x16xf32> {partir.border = "arg1: 8x16xf32 [{model}, {}]"}
  // CHECK-SAME: -> (tensor<64x16xf32> {partir.border = "result/0: 256x16xf32 [{batch}, {}]"})
  func.func @main(%x: tensor<256x8xf32> {partir.nest = #partir.nest<[batch: i, model: j]>}, %w: tensor<8x16xf32> {partir.nest = #partir.nest<[model: i]>}) -> (tensor<256x16xf32> {partir.nest = #partir.nest<[batch: i]>}) {
    // CHECK: %[[Y:.*]] = stablehlo.dot_general {{.*}} : (tensor<64x4xf32>, tensor<4x16xf32>) -> tensor<64x16xf32>
    // CHECK-NEXT: %[[R:.*]] = partir.all_reduce "add" ["model"] %[[Y]]
    // CHECK-NEXT: return %[[R]]
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {partir.nest = #partir.nest<[batch: i, model: k]>} : (tensor<256x8xf32>, tensor<8x16xf32>) -> tensor<256x16xf32>
    return %y : tensor<256x16xf32>
  }
}

// -----

// Producer and user disagree: an all_to_all; the sizes of a slice become local.
module attributes {partir.form = "nests", partir.mesh = #partir.mesh<"batch"=2>} {
  func.func @main(%x: tensor<8x4xf32> {partir.nest = #partir.nest<[batch: i]>}) -> (tensor<4x4xf32> {partir.nest = #partir.nest<[batch: j]>}) {
    // CHECK: partir.all_to_all %x {axes = ["batch"], gather_dim = 0 : i64, slice_dim = 1 : i64} : tensor<4x4xf32> -> tensor<8x2xf32>
    // CHECK: stablehlo.slice {{.*}} [0:4, 0:2] : (tensor<8x2xf32>) -> tensor<4x2xf32>
    %y = stablehlo.slice %x [0:4, 0:4] {partir.nest = #partir.nest<[batch: j]>} : (tensor<8x4xf32>) -> tensor<4x4xf32>
    return %y : tensor<4x4xf32>
  }
}

// -----

// A tiled iota counts from where its tile begins.
module attributes {partir.form = "nests", partir.mesh = #partir.mesh<"batch"=2>} {
  func.func @main() -> (tensor<8xi32> {partir.nest = #partir.nest<[batch: i]>}) {
    // CHECK: %[[I:.*]] = stablehlo.iota dim = 0 : tensor<4xi32>
    // CHECK: %[[A:.*]] = partir.axis_index "batch"
    // CHECK: %[[O:.*]] = stablehlo.multiply %[[A]]
    // CHECK: %[[B:.*]] = stablehlo.broadcast_in_dim %[[O]]
    // CHECK: stablehlo.add %[[I]], %[[B]]
    %y = stablehlo.iota dim = 0 {partir.nest = #partir.nest<[batch: i]>} : tensor<8xi32>
    return %y : tensor<8xi32>
  }
}
