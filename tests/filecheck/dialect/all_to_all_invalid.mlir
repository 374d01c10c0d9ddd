// RUN: partir-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: an all_to_all is between two dimensions, got: 0 twice
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.all_to_all %x {axes = ["model"], gather_dim = 0 : i64, slice_dim = 0 : i64} : tensor<8x6xf32> -> tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: an all_to_all slices a dimension that does not exist in tensor<8x6xf32>, got: 2
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.all_to_all %x {axes = ["model"], gather_dim = 0 : i64, slice_dim = 2 : i64} : tensor<8x6xf32> -> tensor<16x3xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: a tile of tensor<16x6xf32> on the mesh batch=4,model=2 is tensor<16x3xf32>, got: tensor<16x2xf32>
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.all_to_all %x {axes = ["model"], gather_dim = 0 : i64, slice_dim = 1 : i64} : tensor<8x6xf32> -> tensor<16x2xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: a tile of tensor<32x6xf32> on the mesh batch=4,model=2 is tensor<16x6xf32>, got: tensor<8x6xf32>
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.all_to_all %x {axes = ["model"], gather_dim = 0 : i64, slice_dim = 1 : i64} : tensor<8x6xf32> -> tensor<32x3xf32>
    return %x : tensor<8x6xf32>
  }
}
