// RUN: partir-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: no such mesh axis: 'modle', the mesh is batch=4,model=2; did you mean 'model'?
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %y = partir.loop "modle" [#partir.any] (%i : !partir.range<2>) {
      partir.yield %x : tensor<8x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: the range of a loop is the size of its axis, batch=4, got: 2
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %y = partir.loop "batch" [#partir.any] (%i : !partir.range<2>) {
      partir.yield %x : tensor<8x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: an axis never nests in itself, got: batch
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %y = partir.loop "batch" [#partir.any] (%i : !partir.range<4>) {
      %z = partir.loop "batch" [#partir.any] (%j : !partir.range<4>) {
        partir.yield %x : tensor<8x6xf32>
      } : tensor<8x6xf32>
      partir.yield %z : tensor<8x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: a tile of a dimension that does not exist in tensor<8x6xf32>, got: 2
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %y = partir.loop "batch" [#partir.tile<2>] (%i : !partir.range<4>) {
      partir.yield %x : tensor<8x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: #partir.tile<1> over 4 iterations makes tensor<8x6xf32> of tensor<8x2xf32>, but the body yields: tensor<2x6xf32>
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %y = partir.loop "batch" [#partir.tile<1>] (%i : !partir.range<4>) {
      %xs = partir.slice 0 %x[%i] : tensor<2x6xf32>
      partir.yield %xs : tensor<2x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: #partir.sum over 4 iterations makes tensor<8x6xf32> of tensor<8x6xf32>, but the body yields: tensor<2x6xf32>
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %y = partir.loop "batch" [#partir.sum] (%i : !partir.range<4>) {
      %xs = partir.slice 0 %x[%i] : tensor<2x6xf32>
      partir.yield %xs : tensor<2x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: #partir.sum combines partial results, but all iterations make the same
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %y = partir.loop "batch" [#partir.sum] (%i : !partir.range<4>) {
      partir.yield %x : tensor<8x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: the iterations must agree for #partir.any, but the value depends on them
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %y = partir.loop "batch" [#partir.any] (%i : !partir.range<4>) {
      %xs = partir.slice 0 %x[%i] : tensor<2x6xf32>
      partir.yield %xs : tensor<2x6xf32>
    } : tensor<2x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: a loop has as many actions as results and yielded values, and at least one, got: 2 actions, 1 results, 1 yielded
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %y = partir.loop "batch" [#partir.any, #partir.any] (%i : !partir.range<4>) {
      partir.yield %x : tensor<8x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: an action is a tile, a reduction or any, got: "any"
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %y = partir.loop "batch" ["any"] (%i : !partir.range<4>) {
      partir.yield %x : tensor<8x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: the body of a loop takes one !partir.range, got: (tensor<i32>)
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %y = partir.loop "batch" [#partir.any] (%i : tensor<i32>) {
      partir.yield %x : tensor<8x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}

// -----
// CHECK: a range has at least 1 iteration, got: 0
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %y = partir.loop "batch" [#partir.any] (%i : !partir.range<0>) {
      partir.yield %x : tensor<8x6xf32>
    } : tensor<8x6xf32>
    return %x : tensor<8x6xf32>
  }
}
