// RUN: partir-opt %s -p partir-optimise-collectives --split-input-file | filecheck %s

// CHECK-LABEL: @slice_of_gather_is_nothing
module attributes {partir.mesh = #partir.mesh<"batch"=2>} {
  func.func @slice_of_gather_is_nothing(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    // CHECK-NEXT: return %x
    %0 = partir.all_gather %x [["batch"], []] : tensor<4x8xf32> -> tensor<8x8xf32>
    %1 = partir.all_slice %0 [["batch"], []] : tensor<8x8xf32> -> tensor<4x8xf32>
    return %1 : tensor<4x8xf32>
  }
}

// -----

// CHECK-LABEL: @slice_of_gather_of_another_dimension
module attributes {partir.mesh = #partir.mesh<"batch"=2>} {
  func.func @slice_of_gather_of_another_dimension(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
    // CHECK-NEXT: partir.all_to_all %x {axes = ["batch"], gather_dim = 0 : i64, slice_dim = 1 : i64}
    // CHECK-NEXT: return
    %0 = partir.all_gather %x [["batch"], []] : tensor<4x8xf32> -> tensor<8x8xf32>
    %1 = partir.all_slice %0 [[], ["batch"]] : tensor<8x8xf32> -> tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}

// -----

// CHECK-LABEL: @slice_of_reduction
module attributes {partir.mesh = #partir.mesh<"batch"=2>} {
  func.func @slice_of_reduction(%x: tensor<8x8xf32>) -> tensor<4x8xf32> {
    // CHECK-NEXT: partir.reduce_scatter "add" {{\[\["batch"\], \[\]\]}} %x : tensor<8x8xf32> -> tensor<4x8xf32>
    // CHECK-NEXT: return
    %0 = partir.all_reduce "add" ["batch"] %x : tensor<8x8xf32>
    %1 = partir.all_slice %0 [["batch"], []] : tensor<8x8xf32> -> tensor<4x8xf32>
    return %1 : tensor<4x8xf32>
  }
}

// -----

// CHECK-LABEL: @a_reduction_with_another_use_stays
module attributes {partir.mesh = #partir.mesh<"batch"=2>} {
  func.func @a_reduction_with_another_use_stays(%x: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>) {
    // CHECK-NEXT: partir.all_reduce
    // CHECK-NEXT: partir.all_slice
    %0 = partir.all_reduce "add" ["batch"] %x : tensor<8x8xf32>
    %1 = partir.all_slice %0 [["batch"], []] : tensor<8x8xf32> -> tensor<4x8xf32>
    return %1, %0 : tensor<4x8xf32>, tensor<8x8xf32>
  }
}

// -----

// CHECK-LABEL: @gather_of_slice
module attributes {partir.mesh = #partir.mesh<"batch"=2>} {
  func.func @gather_of_slice(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    // CHECK-NEXT: return %x
    %0 = partir.all_slice %x [["batch"], []] : tensor<8x8xf32> -> tensor<4x8xf32>
    %1 = partir.all_gather %0 [["batch"], []] : tensor<4x8xf32> -> tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
}

// -----

// CHECK-LABEL: @sum_of_reductions
module attributes {partir.mesh = #partir.mesh<"batch"=2>} {
  func.func @sum_of_reductions(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
    // CHECK-NEXT: %[[S:.*]] = stablehlo.add %x, %y
    // CHECK-NEXT: partir.all_reduce "add" ["batch"] %[[S]]
    // CHECK-NEXT: return
    %0 = partir.all_reduce "add" ["batch"] %x : tensor<8x8xf32>
    %1 = partir.all_reduce "add" ["batch"] %y : tensor<8x8xf32>
    %2 = stablehlo.add %0, %1 : tensor<8x8xf32>
    return %2 : tensor<8x8xf32>
  }
}
