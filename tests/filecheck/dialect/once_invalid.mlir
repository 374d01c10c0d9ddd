// RUN: partir-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: a reducer is one of add, and, max, min, mul, or, got: sum
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %l = partir.loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) {
      %b = partir.once "sum" %s[%i] : tensor<f32>
      %xs = partir.slice 0 %x[%i] : tensor<2x6xf32>
      partir.yield %xs : tensor<2x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: once keeps the type tensor<f32>, got: tensor<f64>
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %l = partir.loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) {
      %b = partir.once "add" %s[%i] : tensor<f64>
      %xs = partir.slice 0 %x[%i] : tensor<2x6xf32>
      partir.yield %xs : tensor<2x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}
