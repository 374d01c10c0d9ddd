// RUN: partir-opt %s -p partir-verify --split-input-file --verify-diagnostics | filecheck %s

// CHECK: nest form needs a mesh, but the module has no partir.mesh
module attributes {partir.form = "nests"} {
  func.func @main(%x: tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) {
    %0 = stablehlo.tanh %x {partir.nest = #partir.nest<[batch: i]>} : tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}

// -----

// CHECK: stablehlo.tanh: nest form, but there is no partir.nest on the op
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>, partir.form = "nests"} {
  func.func @main(%x: tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) {
    %0 = stablehlo.tanh %x : tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}

// -----

// CHECK: argument arg0: nest form, but there is no partir.nest on argument arg0
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>, partir.form = "nests"} {
  func.func @main(%x: tensor<8x6xf32>) -> (tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) {
    %0 = stablehlo.tanh %x {partir.nest = #partir.nest<[batch: i]>} : tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}

// -----

// CHECK: result result/0: nest form, but there is no partir.nest on result result/0
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>, partir.form = "nests"} {
  func.func @main(%x: tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<8x6xf32>) {
    %0 = stablehlo.tanh %x {partir.nest = #partir.nest<[batch: i]>} : tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}

// -----

// CHECK: stablehlo.tanh: no such mesh axis: 'bach', the mesh is batch=4,model=2; did you mean 'batch'?
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>, partir.form = "nests"} {
  func.func @main(%x: tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) {
    %0 = stablehlo.tanh %x {partir.nest = #partir.nest<[bach: i]>} : tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}

// -----

// CHECK: stablehlo.tanh: the rule has no such factor, it has i, j, got: k
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>, partir.form = "nests"} {
  func.func @main(%x: tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) {
    %0 = stablehlo.tanh %x {partir.nest = #partir.nest<[batch: k]>} : tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}

// -----

// CHECK: argument arg0: a tile of a dimension that does not exist in tensor<8x6xf32>, got: batch: k
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>, partir.form = "nests"} {
  func.func @main(%x: tensor<8x6xf32> {partir.nest = #partir.nest<[batch: k]>}) -> (tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) {
    %0 = stablehlo.tanh %x {partir.nest = #partir.nest<[batch: i]>} : tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}

// -----

// CHECK: argument arg0: an identity takes no pending sum, got: batch: pending add
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>, partir.form = "nests"} {
  func.func @main(%x: tensor<8x6xf32> {partir.nest = #partir.nest<[batch: pending add]>}) -> (tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) {
    %0 = stablehlo.tanh %x {partir.nest = #partir.nest<[batch: i]>} : tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}

// -----

// CHECK: stablehlo.tanh: no operand brings a partial result, got: batch: pending add
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>, partir.form = "nests"} {
  func.func @main(%x: tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) {
    %0 = stablehlo.tanh %x {partir.nest = #partir.nest<[batch: pending add]>} : tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}

// -----

// CHECK: stablehlo.sort: a blocked factor cannot be tiled, got: batch: j
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>, partir.form = "nests"} {
  func.func @main(%x: tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) {
    %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }) {partir.nest = #partir.nest<[batch: j]>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}

// -----

// CHECK: stablehlo.negate: partir.nest of the op is a #partir.nest, got: "batch"
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>, partir.form = "nests"} {
  func.func @main(%x: tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) {
    %0 = stablehlo.negate %x {partir.nest = "batch"} : tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}

// -----

// CHECK: stablehlo.if: nest form, but partir.carries does not have a nest for each of 1 results, got: None
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>, partir.form = "nests"} {
  func.func @main(%p: tensor<i1> {partir.nest = #partir.nest<[]>}, %x: tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) {
    %0 = "stablehlo.if"(%p) ({
      stablehlo.return %x : tensor<8x6xf32>
    }, {
      stablehlo.return %x : tensor<8x6xf32>
    }) : (tensor<i1>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}
