// RUN: partir-opt %s -p partir-nests --split-input-file --verify-diagnostics | filecheck %s

// Sorting each tile of a row does not sort the row.

// CHECK: stablehlo.sort: what the loop over 'batch' does to it is along no factor of its rule
module attributes {partir.mesh = #partir.mesh<"batch"=4>} {
  func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %y = partir.loop "batch" [#partir.tile<1>] (%i : !partir.range<4>) {
      %a = partir.slice 1 %x[%i] : tensor<8x2xf32>
      %b = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %c = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }) : (tensor<8x2xf32>) -> tensor<8x2xf32>
      partir.yield %b : tensor<8x2xf32>
    } : tensor<8x8xf32>
    return %y : tensor<8x8xf32>
  }
}

// -----

// The tiles of the rows, added: no elementwise op makes that.

// CHECK: stablehlo.tanh: outside its loops it would be no valid op
module attributes {partir.mesh = #partir.mesh<"batch"=4>} {
  func.func @main(%x: tensor<8x8xf32>) -> tensor<2x8xf32> {
    %y = partir.loop "batch" [#partir.sum] (%i : !partir.range<4>) {
      %a = partir.slice 0 %x[%i] : tensor<2x8xf32>
      %t = stablehlo.tanh %a : tensor<2x8xf32>
      partir.yield %t : tensor<2x8xf32>
    } : tensor<2x8xf32>
    return %y : tensor<2x8xf32>
  }
}

// -----

// CHECK: takes a part of what is a part along 'batch' already
module attributes {partir.mesh = #partir.mesh<"batch"=4>} {
  func.func @main(%x: tensor<16xf32>) -> tensor<4xf32> {
    %y = partir.loop "batch" [#partir.tile<0>] (%i : !partir.range<4>) {
      %a = partir.slice 0 %x[%i] : tensor<4xf32>
      %b = partir.slice 0 %a[%i] : tensor<1xf32>
      %c = stablehlo.negate %b : tensor<1xf32>
      partir.yield %c : tensor<1xf32>
    } : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// tanh of a partial sum is not the part of a sum.

// CHECK: stablehlo.tanh: model: pending add does not pass through operands 0 together
module attributes {partir.mesh = #partir.mesh<"model"=2>} {
  func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>) -> tensor<4x6xf32> {
    %y = partir.loop "model" [#partir.sum] (%i : !partir.range<2>) {
      %xs = partir.slice 1 %x[%i] : tensor<4x4xf32>
      %ws = partir.slice 0 %w[%i] : tensor<4x6xf32>
      %d = stablehlo.dot_general %xs, %ws, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
      %t = stablehlo.tanh %d : tensor<4x6xf32>
      partir.yield %t : tensor<4x6xf32>
    } : tensor<4x6xf32>
    return %y : tensor<4x6xf32>
  }
}

// -----

// CHECK: control flow in a loop has no nest
module attributes {partir.mesh = #partir.mesh<"model"=2>} {
  func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
    %y = partir.loop "model" [#partir.any] (%i : !partir.range<2>) {
      %0 = "stablehlo.if"(%p) ({
        stablehlo.return %x : tensor<4xf32>
      }, {
        stablehlo.return %x : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      partir.yield %0 : tensor<4xf32>
    } : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
