// RUN: partir-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: a yield ends the body of a partir.loop
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = "stablehlo.if"(%n) ({
      partir.yield %x : tensor<8x6xf32>
    }, {
      stablehlo.return %x : tensor<8x6xf32>
    }) : (tensor<i32>) -> tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: the body of a loop ends with partir.yield
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %l = partir.loop "batch" [#partir.any] (%i : !partir.range<4>) {
      stablehlo.return %x : tensor<8x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}
