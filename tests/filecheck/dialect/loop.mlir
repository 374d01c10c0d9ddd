// RUN: partir-opt %s | partir-opt | filecheck %s
// RUN: partir-opt %s --print-op-generic | partir-opt | filecheck %s

module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  // CHECK-LABEL: func.func @nested
  func.func @nested(%x: tensor<256x8xf32>, %w: tensor<8x16xf32>) -> tensor<256x16xf32> {
    // CHECK: %[[Y:.*]] = partir.loop "batch" [#partir.tile<0>] (%[[I:.*]] : !partir.range<4>) {
    %y = partir.loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) {
      %xs = partir.slice 0 %x[%i] : tensor<64x8xf32>
      // CHECK: partir.loop "model" [#partir.sum] (%[[J:.*]] : !partir.range<2>) {
      %r = partir.loop "model" [#partir.sum] (%j : !partir.range<2>) {
        %xk = partir.slice 1 %xs[%j] : tensor<64x4xf32>
        %wk = partir.slice 0 %w[%j] : tensor<4x16xf32>
        // CHECK: stablehlo.dot_general
        %d = stablehlo.dot_general %xk, %wk, contracting_dims = [1] x [0] : (tensor<64x4xf32>, tensor<4x16xf32>) -> tensor<64x16xf32>
        partir.yield %d : tensor<64x16xf32>
      // CHECK: } : tensor<64x16xf32>
      } : tensor<64x16xf32>
      partir.yield %r : tensor<64x16xf32>
    // CHECK: } : tensor<256x16xf32>
    } : tensor<256x16xf32>
    // CHECK: return %[[Y]]
    return %y : tensor<256x16xf32>
  }

  // An uneven tile is ceil(7 / 2) long.
  // CHECK-LABEL: func.func @uneven
  func.func @uneven(%x: tensor<7xf32>) -> tensor<7xf32> {
    // CHECK: partir.loop "model" [#partir.tile<0>] (%{{.*}} : !partir.range<2>) attributes {note = "kept"} {
    %y = partir.loop "model" [#partir.tile<0>] (%i : !partir.range<2>) attributes {note = "kept"} {
      // CHECK: partir.slice 0 %{{.*}}[%{{.*}}] : tensor<4xf32>
      %xs = partir.slice 0 %x[%i] : tensor<4xf32>
      %n = stablehlo.negate %xs : tensor<4xf32>
      partir.yield %n : tensor<4xf32>
    } : tensor<7xf32>
    return %y : tensor<7xf32>
  }

  // Every action, and several results.
  // CHECK-LABEL: func.func @actions
  func.func @actions(%x: tensor<8xi32>) -> tensor<i32> {
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    // CHECK: partir.loop "batch" [#partir.sum, #partir.max, #partir.min, #partir.mul, #partir.and, #partir.or, #partir.any, #partir.tile<0>]
    %y:8 = partir.loop "batch" [#partir.sum, #partir.max, #partir.min, #partir.mul, #partir.and, #partir.or, #partir.any, #partir.tile<0>] (%i : !partir.range<4>) {
      %xs = partir.slice 0 %x[%i] : tensor<2xi32>
      %s = stablehlo.reduce(%xs init: %i0) applies stablehlo.add across dimensions = [0] : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
      %n = stablehlo.negate %i0 : tensor<i32>
      partir.yield %s, %s, %s, %s, %s, %s, %n, %xs : tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<2xi32>
    // CHECK: } : tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<8xi32>
    } : tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<8xi32>
    return %y#0 : tensor<i32>
  }
}
