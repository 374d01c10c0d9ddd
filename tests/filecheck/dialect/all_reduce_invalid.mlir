// RUN: partir-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: a reducer is one of add, and, max, min, mul, or, got: sum
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.all_reduce "sum" ["model"] %x : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: 'and' combines integers, got: tensor<8x6xf32>
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.all_reduce "and" ["model"] %x : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: a collective is over at least one axis
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>, %n: tensor<i32>) -> tensor<8x6xf32> {
    %0 = partir.all_reduce "add" [] %x : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}
