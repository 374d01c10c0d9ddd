// RUN: partir-opt %s | partir-opt | filecheck %s
// RUN: partir-opt %s --print-op-generic | partir-opt | filecheck %s

module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>) -> tensor<8x6xf32> {
    // CHECK: partir.collective_permute %{{.*}} {source_target_pairs = dense<{{\[\[0, 1\], \[1, 0\]\]}}> : tensor<2x2xi64>} : tensor<8x6xf32>
    %0 = partir.collective_permute %x {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}
