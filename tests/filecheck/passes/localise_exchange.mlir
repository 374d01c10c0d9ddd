// RUN: partir-opt %s -p partir-lower-to-spmd --split-input-file | filecheck %s

// A window of three receives one element from either side; the ends get the initial value.
// CHECK-LABEL: func.func @main
module attributes {partir.form = "nests", partir.mesh = #partir.mesh<"a"=4>} {
  func.func @main(%x: tensor<24xf32> {partir.nest = #partir.nest<[a: i]>}) -> (tensor<24xf32> {partir.nest = #partir.nest<[a: i]>}) {
    // CHECK: %[[L:.*]] = stablehlo.slice %x [5:6] : (tensor<6xf32>) -> tensor<1xf32>
    // CHECK-NEXT: partir.collective_permute %[[L]] {source_target_pairs = dense<{{\[\[}}0, 1], [1, 2], [2, 3]]> : tensor<3x2xi64>} : tensor<1xf32>
    // CHECK-NEXT: %[[R:.*]] = stablehlo.slice %x [0:1] : (tensor<6xf32>) -> tensor<1xf32>
    // CHECK-NEXT: partir.collective_permute %[[R]] {source_target_pairs = dense<{{\[\[}}1, 0], [2, 1], [3, 2]]> : tensor<3x2xi64>} : tensor<1xf32>
    // CHECK: stablehlo.select {{.*}} : tensor<8xi1>, tensor<8xf32>
    // CHECK: "stablehlo.reduce_window"{{.*}}padding = dense<{{\[\[}}0, 0]]> : tensor<1x2xi64>
    // CHECK: (tensor<8xf32>, tensor<f32>) -> tensor<6xf32>
    %i = stablehlo.constant {partir.nest = #partir.nest<[]>} dense<0.0> : tensor<f32>
    %r = "stablehlo.reduce_window"(%x, %i) <{window_dimensions = array<i64: 3>, padding = dense<[[1, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {partir.nest = #partir.nest<[a: i]>} : (tensor<24xf32>, tensor<f32>) -> tensor<24xf32>
    return %r : tensor<24xf32>
  }
}

// -----

// A reversal sends every tile to the opposite device.
// CHECK-LABEL: func.func @main
module attributes {partir.form = "nests", partir.mesh = #partir.mesh<"a"=4>} {
  func.func @main(%x: tensor<24xf32> {partir.nest = #partir.nest<[a: i]>}) -> (tensor<24xf32> {partir.nest = #partir.nest<[a: i]>}) {
    // CHECK: %[[P:.*]] = partir.collective_permute %x {source_target_pairs = dense<{{\[\[}}3, 0], [2, 1], [1, 2], [0, 3]]> : tensor<4x2xi64>} : tensor<6xf32>
    // CHECK: stablehlo.reverse %[[P]], dims = [0] : tensor<6xf32>
    %r = stablehlo.reverse %x, dims = [0] {partir.nest = #partir.nest<[a: i]>} : tensor<24xf32>
    return %r : tensor<24xf32>
  }
}
