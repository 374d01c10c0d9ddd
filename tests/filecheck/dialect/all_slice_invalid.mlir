// RUN: partir-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: a tile of tensor<8x6xf32> on the mesh batch=4,model=2 is tensor<2x6xf32>, got: tensor<4x6xf32>
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.all_slice %x [["batch"], []] : tensor<8x6xf32> -> tensor<4x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: there is a list of axes for each dimension of tensor<8x6xf32>, got: 1 lists
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.all_slice %x [["batch"]] : tensor<8x6xf32> -> tensor<2x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: an axis is named at most once, got: 'model' twice
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.all_slice %x [["model"], ["model"]] : tensor<8x6xf32> -> tensor<4x3xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: a collective is over at least one axis
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.all_slice %x [[], []] : tensor<8x6xf32> -> tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}
