// RUN: partir-opt %s -p partir-propagate --split-input-file | filecheck %s

// Two factors are possible: nothing happens.
module attributes {partir.form = "nests", partir.mesh = #partir.mesh<"batch"=4>} {
  func.func @main(%x: tensor<256x8xf32> {partir.nest = #partir.nest<[batch: i]>}, %w: tensor<8x16xf32> {partir.nest = #partir.nest<[batch: i]>}) -> (tensor<256x16xf32> {partir.nest = #partir.nest<[]>}) {
    // CHECK: stablehlo.dot_general {{.*}}{partir.nest = #partir.nest<[]>}
    %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {partir.nest = #partir.nest<[]>} : (tensor<256x8xf32>, tensor<8x16xf32>) -> tensor<256x16xf32>
    return %h : tensor<256x16xf32>
  }
}

// -----

// A generated dimension takes its user's factor.
module attributes {partir.form = "nests", partir.mesh = #partir.mesh<"model"=4>} {
  func.func @main(%x: tensor<8x16xf32> {partir.nest = #partir.nest<[model: j]>}) -> (tensor<8x16xf32> {partir.nest = #partir.nest<[]>}) {
    // CHECK: stablehlo.iota dim = 1 {partir.nest = #partir.nest<[model: j]>}
    %i = stablehlo.iota dim = 1 {partir.nest = #partir.nest<[]>} : tensor<8x16xf32>
    // CHECK: stablehlo.add {{.*}}{partir.nest = #partir.nest<[model: j]>}
    %y = stablehlo.add %x, %i {partir.nest = #partir.nest<[]>} : tensor<8x16xf32>
    return %y : tensor<8x16xf32>
  }
}
