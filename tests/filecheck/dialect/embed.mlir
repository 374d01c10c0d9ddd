// RUN: partir-opt %s | partir-opt | filecheck %s
// RUN: partir-opt %s --print-op-generic | partir-opt | filecheck %s

module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>, %s: tensor<f32>) -> tensor<8x6xf32> {
    %l = partir.loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) {
      %a = partir.slice 1 %x[%i] : tensor<8x2xf32>
      // CHECK: partir.embed "max" 1 %{{.*}}[%{{.*}}] : tensor<8x6xf32>
      %b = partir.embed "max" 1 %a[%i] : tensor<8x6xf32>
      %xs = partir.slice 0 %x[%i] : tensor<2x6xf32>
      partir.yield %xs : tensor<2x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}
