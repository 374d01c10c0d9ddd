// RUN: partir-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: a reducer is one of add, and, max, min, mul, or, got: sub
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %l = partir.loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) {
      %a = partir.slice 1 %x[%i] : tensor<8x2xf32>
      %b = partir.embed "sub" 1 %a[%i] : tensor<8x6xf32>
      %xs = partir.slice 0 %x[%i] : tensor<2x6xf32>
      partir.yield %xs : tensor<2x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: tensor<8x8xf32> is made of 4 tiles tensor<8x2xf32> along dimension 1, got: tensor<8x6xf32>
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %l = partir.loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) {
      %b = partir.embed "add" 1 %x[%i] : tensor<8x8xf32>
      %xs = partir.slice 0 %x[%i] : tensor<2x6xf32>
      partir.yield %xs : tensor<2x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: an embedding in a dimension that does not exist in tensor<8x6xf32>, got: 4
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %l = partir.loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) {
      %b = partir.embed "add" 4 %x[%i] : tensor<8x6xf32>
      %xs = partir.slice 0 %x[%i] : tensor<2x6xf32>
      partir.yield %xs : tensor<2x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}
