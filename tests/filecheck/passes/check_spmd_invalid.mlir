// RUN: partir-opt %s -p partir-check-spmd --split-input-file --verify-diagnostics | filecheck %s

// The reduction is missing.
// CHECK: result 0 differs between devices along model, where it is declared to be equal
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<64x4xf32> {partir.border = "x: 256x8xf32 [{batch}, {model}]"}, %w: tensor<4x16xf32> {partir.border = "w: 8x16xf32 [{model}, {}]"}) -> (tensor<64x16xf32> {partir.border = "y: 256x16xf32 [{batch}, {}]"}) {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x4xf32>, tensor<4x16xf32>) -> tensor<64x16xf32>
    return %y : tensor<64x16xf32>
  }
}

// -----

// What is equal on all devices would be counted twice.
// CHECK: partir.all_reduce runs along model, along which all devices hold the same
module attributes {partir.mesh = #partir.mesh<"model"=2>} {
  func.func @main(%x: tensor<8xf32> {partir.border = "x: 8xf32 [{}]"}) -> (tensor<8xf32> {partir.border = "y: 8xf32 [{}]"}) {
    %r = partir.all_reduce "add" ["model"] %x : tensor<8xf32>
    return %r : tensor<8xf32>
  }
}

// -----

// Parts of different wholes.
// CHECK: partir.all_slice slices along model what differs along it already
module attributes {partir.mesh = #partir.mesh<"model"=2>} {
  func.func @main(%x: tensor<4x8xf32> {partir.border = "x: 8x8xf32 [{model}, {}]"}) -> (tensor<4x4xf32> {partir.border = "y: 8x4xf32 [{model}, {}]"}) {
    %r = partir.all_slice %x [[], ["model"]] : tensor<4x8xf32> -> tensor<4x4xf32>
    return %r : tensor<4x4xf32>
  }
}

// -----

// Devices of one group in different branches never meet.
// CHECK: partir.all_reduce runs along model, along which devices may take different branches
module attributes {partir.mesh = #partir.mesh<"model"=2>} {
  func.func @main(%x: tensor<4xf32> {partir.border = "x: 8xf32 [{model}]"}) -> (tensor<4xf32> {partir.border = "y: 8xf32 [{model}]"}) {
    %i = partir.axis_index "model" : tensor<i32>
    %r = "stablehlo.case"(%i) ({
      %a = partir.all_reduce "add" ["model"] %x : tensor<4xf32>
      stablehlo.return %a : tensor<4xf32>
    }, {
      stablehlo.return %x : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
}
