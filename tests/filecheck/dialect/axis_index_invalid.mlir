// RUN: partir-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: no such mesh axis: 'data', the mesh is batch=4,model=2
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.axis_index "data" : tensor<i32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: an axis index is an integer scalar, got: tensor<f32>
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.axis_index "batch" : tensor<f32>
    return %x : tensor<8x6xf32>
  }
}
