// RUN: partir-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: a slice of a dimension that does not exist in tensor<8x6xf32>, got: 2
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %l = partir.loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) {
      %a = partir.slice 2 %x[%i] : tensor<8x2xf32>
      %xs = partir.slice 0 %x[%i] : tensor<2x6xf32>
      partir.yield %xs : tensor<2x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: one of 4 slices of tensor<8x6xf32> along dimension 1 is tensor<8x2xf32>, got: tensor<8x3xf32>
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %l = partir.loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) {
      %a = partir.slice 1 %x[%i] : tensor<8x3xf32>
      %xs = partir.slice 0 %x[%i] : tensor<2x6xf32>
      partir.yield %xs : tensor<2x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: index
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %a = partir.slice 0 %x[%n] : tensor<2x6xf32>
    return %x : tensor<8x6xf32>
  }
}
