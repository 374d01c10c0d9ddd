// RUN: partir-opt %s | partir-opt | filecheck %s
// RUN: partir-opt %s --print-op-generic | partir-opt | filecheck %s

module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>) -> tensor<8x6xf32> {
    // CHECK: partir.replicate ["model"] %{{.*}} : tensor<8x6xf32>
    %0 = partir.replicate ["model"] %x : tensor<8x6xf32>
    // CHECK: partir.replicate ["batch", "model"] %{{.*}} {note = "kept"} : tensor<f32>
    %1 = partir.replicate ["batch", "model"] %s {note = "kept"} : tensor<f32>
    return %x : tensor<8x6xf32>
  }
}
