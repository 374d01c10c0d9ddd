// RUN: partir-opt %s | partir-opt | filecheck %s
// RUN: partir-opt %s --print-op-generic | partir-opt | filecheck %s

module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>) -> tensor<8x6xf32> {
    // CHECK: partir.all_to_all %{{.*}} {axes = ["model"], gather_dim = 0 : i64, slice_dim = 1 : i64} : tensor<8x6xf32> -> tensor<16x3xf32>
    %0 = partir.all_to_all %x {axes = ["model"], gather_dim = 0 : i64, slice_dim = 1 : i64} : tensor<8x6xf32> -> tensor<16x3xf32>
    return %x : tensor<8x6xf32>
  }
}
