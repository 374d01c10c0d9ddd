// RUN: partir-opt %s -p partir-check-spmd | filecheck %s

// CHECK: partir.all_reduce
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<64x4xf32> {partir.border = "x: 256x8xf32 [{batch}, {model}]"}, %w: tensor<4x16xf32> {partir.border = "w: 8x16xf32 [{model}, {}]"}) -> (tensor<64x16xf32> {partir.border = "y: 256x16xf32 [{batch}, {}]"}) {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x4xf32>, tensor<4x16xf32>) -> tensor<64x16xf32>
    %r = partir.all_reduce "add" ["model"] %y : tensor<64x16xf32>
    return %r : tensor<64x16xf32>
  }
}
