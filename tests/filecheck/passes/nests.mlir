// RUN: partir-opt %s -p partir-nests --split-input-file | filecheck %s
// RUN: partir-opt %s -p partir-nests,partir-loops --split-input-file | filecheck %s --check-prefix=BACK

// CHECK: module attributes {{.*}}partir.form = "nests"
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  // CHECK: func.func @main(%{{.*}}: tensor<256x8xf32> {partir.nest = #partir.nest<[]>}, %{{.*}}: tensor<8x16xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<256x16xf32> {partir.nest = #partir.nest<[]>}) {
  // BACK: func.func @main(%[[X:.*]]: tensor<256x8xf32>, %[[W:.*]]: tensor<8x16xf32>) -> tensor<256x16xf32> {
  func.func @main(%x: tensor<256x8xf32>, %w: tensor<8x16xf32>) -> tensor<256x16xf32> {
    // CHECK-NEXT: %[[Y:.*]] = stablehlo.dot_general %{{.*}}, %{{.*}}, contracting_dims = [1] x [0] {partir.nest = #partir.nest<[batch: i, model: k]>} : (tensor<256x8xf32>, tensor<8x16xf32>) -> tensor<256x16xf32>
    // BACK-NEXT: partir.loop "batch" [#partir.tile<0>] (%[[I:.*]] : !partir.range<4>) {
    // BACK-NEXT:   %[[XS:.*]] = partir.slice 0 %[[X]][%[[I]]] : tensor<64x8xf32>
    // BACK-NEXT:   partir.loop "model" [#partir.sum] (%[[J:.*]] : !partir.range<2>) {
    %y = partir.loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) {
      %xs = partir.slice 0 %x[%i] : tensor<64x8xf32>
      %r = partir.loop "model" [#partir.sum] (%j : !partir.range<2>) {
        %xk = partir.slice 1 %xs[%j] : tensor<64x4xf32>
        %wk = partir.slice 0 %w[%j] : tensor<4x16xf32>
        %d = stablehlo.dot_general %xk, %wk, contracting_dims = [1] x [0] : (tensor<64x4xf32>, tensor<4x16xf32>) -> tensor<64x16xf32>
        partir.yield %d : tensor<64x16xf32>
      } : tensor<64x16xf32>
      partir.yield %r : tensor<64x16xf32>
    } : tensor<256x16xf32>
    // CHECK-NEXT: %[[T:.*]] = stablehlo.tanh %[[Y]] {partir.nest = #partir.nest<[]>} : tensor<256x16xf32>
    %t = stablehlo.tanh %y : tensor<256x16xf32>
    return %t : tensor<256x16xf32>
  }
}

// -----

// A loop of several ops written by hand: the second takes the tile that the first one makes.

module attributes {partir.mesh = #partir.mesh<"batch"=4>} {
  // CHECK-LABEL: func.func @fused
  func.func @fused(%x: tensor<6x8xf32>) -> tensor<8x6xf32> {
    // CHECK: stablehlo.tanh %{{.*}} {partir.nest = #partir.nest<[batch: i]>} : tensor<6x8xf32>
    // CHECK: stablehlo.transpose %{{.*}}, dims = [1, 0] {partir.nest = #partir.nest<[batch: j]>} : (tensor<6x8xf32>) -> tensor<8x6xf32>
    %y = partir.loop "batch" [#partir.tile<1>] (%i : !partir.range<4>) {
      %xs = partir.slice 0 %x[%i] : tensor<2x8xf32>
      %t = stablehlo.tanh %xs : tensor<2x8xf32>
      %r = stablehlo.transpose %t, dims = [1, 0] : (tensor<2x8xf32>) -> tensor<8x2xf32>
      partir.yield %r : tensor<8x2xf32>
    } : tensor<8x6xf32>
    return %y : tensor<8x6xf32>
  }
}

// -----

// Iterations that agree; a constant and a broadcast that make their own tiles.

module attributes {partir.mesh = #partir.mesh<"model"=2>} {
  // CHECK-LABEL: func.func @generated
  func.func @generated(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<6xf32>, tensor<4x8xf32>) {
    // CHECK: stablehlo.negate %{{.*}} {partir.nest = #partir.nest<[model: any]>}
    %a = partir.loop "model" [#partir.any] (%i : !partir.range<2>) {
      %0 = stablehlo.negate %x : tensor<8xf32>
      partir.yield %0 : tensor<8xf32>
    } : tensor<8xf32>
    // CHECK: stablehlo.constant {partir.nest = #partir.nest<[model: i]>} dense<1.000000e+00> : tensor<6xf32>
    %b = partir.loop "model" [#partir.tile<0>] (%i : !partir.range<2>) {
      %0 = stablehlo.constant dense<1.0> : tensor<3xf32>
      partir.yield %0 : tensor<3xf32>
    } : tensor<6xf32>
    // CHECK: stablehlo.broadcast_in_dim %{{.*}}, dims = [1] {partir.nest = #partir.nest<[model: i]>} : (tensor<8xf32>) -> tensor<4x8xf32>
    %c = partir.loop "model" [#partir.tile<0>] (%i : !partir.range<2>) {
      %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
      partir.yield %0 : tensor<2x8xf32>
    } : tensor<4x8xf32>
    return %a, %b, %c : tensor<8xf32>, tensor<6xf32>, tensor<4x8xf32>
  }
}
