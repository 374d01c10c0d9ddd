// RUN: partir-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: a device sends and receives at most once, got: (0, 0)
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.collective_permute %x {source_target_pairs = dense<[[0, 1], [0, 2]]> : tensor<2x2xi64>} : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: there are 8 devices, got: (1, 9)
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.collective_permute %x {source_target_pairs = dense<[[0, 1], [1, 9]]> : tensor<2x2xi64>} : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: source-target pairs are a list of pairs, got: (2,)
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.collective_permute %x {source_target_pairs = dense<[0, 1]> : tensor<2xi64>} : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}
