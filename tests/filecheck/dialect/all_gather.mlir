// RUN: partir-opt %s | partir-opt | filecheck %s
// RUN: partir-opt %s --print-op-generic | partir-opt | filecheck %s

module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>) -> tensor<8x6xf32> {
    // CHECK: partir.all_gather %{{.*}} {{\[\["batch"\], \[\]\]}} : tensor<8x6xf32> -> tensor<32x6xf32>
    %0 = partir.all_gather %x [["batch"], []] : tensor<8x6xf32> -> tensor<32x6xf32>
    // The padding of a dimension of 11 on two devices is dropped.
    // CHECK: partir.all_gather %{{.*}} {{\[\[\], \["model"\]\]}} : tensor<8x6xf32> -> tensor<8x11xf32>
    %1 = partir.all_gather %x [[], ["model"]] : tensor<8x6xf32> -> tensor<8x11xf32>
    return %x : tensor<8x6xf32>
  }
}
