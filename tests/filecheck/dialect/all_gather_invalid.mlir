// RUN: partir-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: a tile of tensor<16x6xf32> on the mesh batch=4,model=2 is tensor<4x6xf32>, got: tensor<8x6xf32>
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.all_gather %x [["batch"], []] : tensor<8x6xf32> -> tensor<16x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: no such mesh axis: 'bach', the mesh is batch=4,model=2; did you mean 'batch'?
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.all_gather %x [["bach"], []] : tensor<8x6xf32> -> tensor<32x6xf32>
    return %x : tensor<8x6xf32>
  }
}
