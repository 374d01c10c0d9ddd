// RUN: partir-opt %s | partir-opt | filecheck %s
// RUN: partir-opt %s --print-op-generic | partir-opt | filecheck %s

module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>) -> tensor<8x6xf32> {
    // CHECK: partir.all_slice %{{.*}} {{\[\["batch"\], \["model"\]\]}} : tensor<8x6xf32> -> tensor<2x3xf32>
    %0 = partir.all_slice %x [["batch"], ["model"]] : tensor<8x6xf32> -> tensor<2x3xf32>
    // Deep tiling, uneven: ceil(ceil(6 / 4) / 2).
    // CHECK: partir.all_slice %{{.*}} {{\[\[\], \["batch", "model"\]\]}} : tensor<8x6xf32> -> tensor<8x1xf32>
    %1 = partir.all_slice %x [[], ["batch", "model"]] : tensor<8x6xf32> -> tensor<8x1xf32>
    return %x : tensor<8x6xf32>
  }
}
