// RUN: partir-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: an axis is named at most once, got: 'model' twice
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.stop ["model", "model"] %x : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}
