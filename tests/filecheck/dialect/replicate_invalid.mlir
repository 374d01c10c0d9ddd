// RUN: partir-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: no such mesh axis: 'data', the mesh is batch=4,model=2
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.replicate ["data"] %x : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: partir.replicate names at least one axis
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.replicate [] %x : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}
