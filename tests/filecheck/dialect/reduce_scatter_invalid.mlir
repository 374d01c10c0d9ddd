// RUN: partir-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: a tile of tensor<8x6xf32> on the mesh batch=4,model=2 is tensor<8x3xf32>, got: tensor<4x6xf32>
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.reduce_scatter "add" [[], ["model"]] %x : tensor<8x6xf32> -> tensor<4x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: a reducer is one of add, and, max, min, mul, or, got: mean
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.reduce_scatter "mean" [[], ["model"]] %x : tensor<8x6xf32> -> tensor<8x3xf32>
    return %x : tensor<8x6xf32>
  }
}
