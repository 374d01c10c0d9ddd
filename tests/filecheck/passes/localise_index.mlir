// RUN: partir-opt %s -p partir-lower-to-spmd --split-input-file | filecheck %s

// A gather along a tiled dimension: indices clamp on the global size, what is not in the tile is
// zero, and the parts are added.
// CHECK-LABEL: func.func @main
module attributes {partir.form = "nests", partir.mesh = #partir.mesh<"model"=4>} {
  func.func @main(%x: tensor<24x3xf32> {partir.nest = #partir.nest<[model: i]>}, %i: tensor<5xi32> {partir.nest = #partir.nest<[]>}) -> (tensor<5x3xf32> {partir.nest = #partir.nest<[]>}) {
    // CHECK: stablehlo.constant dense<23> : tensor<5xi32>
    // CHECK: partir.axis_index "model"
    // CHECK: %[[G:.*]] = "stablehlo.gather"(%x, {{.*}}indices_are_sorted = false{{.*}} : (tensor<6x3xf32>, tensor<5xi32>) -> tensor<5x3xf32>
    // CHECK: %[[S:.*]] = stablehlo.select {{.*}}, %[[G]]
    // CHECK-NEXT: partir.all_reduce "add" ["model"] %[[S]]
    %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> {partir.nest = #partir.nest<[model: k]>} : (tensor<24x3xf32>, tensor<5xi32>) -> tensor<5x3xf32>
    return %r : tensor<5x3xf32>
  }
}

// -----

// An update writes what falls into the tile, without any collective.
// CHECK-LABEL: func.func @main
module attributes {partir.form = "nests", partir.mesh = #partir.mesh<"model"=4>} {
  func.func @main(%x: tensor<24xf32> {partir.nest = #partir.nest<[model: i]>}, %u: tensor<3xf32> {partir.nest = #partir.nest<[]>}, %s: tensor<i32> {partir.nest = #partir.nest<[]>}) -> (tensor<24xf32> {partir.nest = #partir.nest<[model: i]>}) {
    // CHECK: %[[OLD:.*]] = stablehlo.dynamic_slice %x
    // CHECK: %[[NEW:.*]] = stablehlo.select {{.*}}, %[[OLD]] : tensor<3xi1>, tensor<3xf32>
    // CHECK-NEXT: %[[R:.*]] = stablehlo.dynamic_update_slice %x, %[[NEW]]
    // CHECK-NEXT: return %[[R]]
    %r = stablehlo.dynamic_update_slice %x, %u, %s {partir.nest = #partir.nest<[model: i]>} : (tensor<24xf32>, tensor<3xf32>, tensor<i32>) -> tensor<24xf32>
    return %r : tensor<24xf32>
  }
}
