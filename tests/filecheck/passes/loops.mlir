// RUN: partir-opt %s -p partir-loops --split-input-file | filecheck %s
// RUN: partir-opt %s -p partir-loops,partir-nests --split-input-file | filecheck %s --check-prefix=BACK

// The nest of a matmul, as in the definition of a nest.

// CHECK-NOT: partir.form
// BACK: partir.form = "nests"
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>, partir.form = "nests"} {
  // The identity at the border keeps its nest.
  // CHECK: func.func @main(%[[X:.*]]: tensor<256x8xf32> {partir.nest = #partir.nest<[batch: i]>}, %[[W:.*]]: tensor<8x16xf32>) -> tensor<256x16xf32>
  // BACK: func.func @main(%{{.*}}: tensor<256x8xf32> {partir.nest = #partir.nest<[batch: i]>}, %{{.*}}: tensor<8x16xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<256x16xf32> {partir.nest = #partir.nest<[]>})
  func.func @main(%x: tensor<256x8xf32> {partir.nest = #partir.nest<[batch: i]>}, %w: tensor<8x16xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<256x16xf32> {partir.nest = #partir.nest<[]>}) {
    // CHECK-NEXT: %[[Y:.*]] = partir.loop "batch" [#partir.tile<0>] (%[[I:.*]] : !partir.range<4>) {
    // CHECK-NEXT:   %[[XS:.*]] = partir.slice 0 %[[X]][%[[I]]] : tensor<64x8xf32>
    // CHECK-NEXT:   %[[R:.*]] = partir.loop "model" [#partir.sum] (%[[J:.*]] : !partir.range<2>) {
    // CHECK-NEXT:     %[[XK:.*]] = partir.slice 1 %[[XS]][%[[J]]] : tensor<64x4xf32>
    // CHECK-NEXT:     %[[WK:.*]] = partir.slice 0 %[[W]][%[[J]]] : tensor<4x16xf32>
    // CHECK-NEXT:     %[[D:.*]] = stablehlo.dot_general %[[XK]], %[[WK]], contracting_dims = [1] x [0] : (tensor<64x4xf32>, tensor<4x16xf32>) -> tensor<64x16xf32>
    // CHECK-NEXT:     partir.yield %[[D]] : tensor<64x16xf32>
    // CHECK-NEXT:   } : tensor<64x16xf32>
    // CHECK-NEXT:   partir.yield %[[R]] : tensor<64x16xf32>
    // CHECK-NEXT: } : tensor<256x16xf32>
    // BACK-NEXT: %[[Y:.*]] = stablehlo.dot_general %{{.*}}, %{{.*}}, contracting_dims = [1] x [0] {partir.nest = #partir.nest<[batch: i, model: k]>} : (tensor<256x8xf32>, tensor<8x16xf32>) -> tensor<256x16xf32>
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {partir.nest = #partir.nest<[batch: i, model: k]>} : (tensor<256x8xf32>, tensor<8x16xf32>) -> tensor<256x16xf32>
    // BACK-NEXT: return %[[Y]]
    return %y : tensor<256x16xf32>
  }
}

// -----

// Two sums that are added while they are pending are one loop of three ops.

module attributes {partir.mesh = #partir.mesh<"model"=2>, partir.form = "nests"} {
  // CHECK-LABEL: func.func @pending
  // BACK-LABEL: func.func @pending
  func.func @pending(%x: tensor<4x8xf32> {partir.nest = #partir.nest<[]>}, %w: tensor<8x6xf32> {partir.nest = #partir.nest<[]>}, %v: tensor<8x6xf32> {partir.nest = #partir.nest<[]>}) -> (tensor<4x6xf32> {partir.nest = #partir.nest<[]>}) {
    // CHECK-NEXT: %[[Y:.*]] = partir.loop "model" [#partir.sum] (%{{.*}} : !partir.range<2>) {
    // CHECK: %[[A:.*]] = stablehlo.dot_general {{.*}} -> tensor<4x6xf32>
    // CHECK: %[[B:.*]] = stablehlo.dot_general {{.*}} -> tensor<4x6xf32>
    // CHECK-NEXT: %[[C:.*]] = stablehlo.add %[[A]], %[[B]] : tensor<4x6xf32>
    // CHECK-NEXT: partir.yield %[[C]] : tensor<4x6xf32>
    // CHECK-NEXT: } : tensor<4x6xf32>
    // BACK-NEXT: stablehlo.dot_general {{.*}} {partir.nest = #partir.nest<[model: k]>}
    // BACK-NEXT: stablehlo.dot_general {{.*}} {partir.nest = #partir.nest<[model: k]>}
    // BACK-NEXT: stablehlo.add {{.*}} {partir.nest = #partir.nest<[model: pending add]>}
    %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {partir.nest = #partir.nest<[model: k]>} : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %b = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] {partir.nest = #partir.nest<[model: k]>} : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %c = stablehlo.add %a, %b {partir.nest = #partir.nest<[model: pending add]>} : tensor<4x6xf32>
    // CHECK-NEXT: return %[[Y]]
    return %c : tensor<4x6xf32>
  }
}

// -----

// Special factors: an iteration keeps its tile of an iota; a gather takes its rows from a tile that
// is embedded in zeros, and the iterations are added. An initial value is counted once.

module attributes {partir.mesh = #partir.mesh<"model"=2>, partir.form = "nests"} {
  // CHECK-LABEL: func.func @special
  // BACK-LABEL: func.func @special
  func.func @special(%t: tensor<10x4xf32> {partir.nest = #partir.nest<[]>}, %n: tensor<3x1xi32> {partir.nest = #partir.nest<[]>}, %init: tensor<f32> {partir.nest = #partir.nest<[]>}) -> (tensor<10xi32> {partir.nest = #partir.nest<[]>}, tensor<3x4xf32> {partir.nest = #partir.nest<[]>}, tensor<4xf32> {partir.nest = #partir.nest<[]>}) {
    // CHECK: partir.loop "model" [#partir.tile<0>] (%[[I:.*]] : !partir.range<2>) {
    // CHECK-NEXT: %[[IOTA:.*]] = stablehlo.iota dim = 0 : tensor<10xi32>
    // CHECK-NEXT: partir.slice 0 %[[IOTA]][%[[I]]] : tensor<5xi32>
    // BACK: stablehlo.iota dim = 0 {partir.nest = #partir.nest<[model: i]>} : tensor<10xi32>
    %0 = stablehlo.iota dim = 0 {partir.nest = #partir.nest<[model: i]>} : tensor<10xi32>
    // CHECK: partir.loop "model" [#partir.sum] (%[[J:.*]] : !partir.range<2>) {
    // CHECK-NEXT: %[[TILE:.*]] = partir.slice 0 %{{.*}}[%[[J]]] : tensor<5x4xf32>
    // CHECK-NEXT: %[[WHOLE:.*]] = partir.embed "add" 0 %[[TILE]][%[[J]]] : tensor<10x4xf32>
    // CHECK-NEXT: "stablehlo.gather"(%[[WHOLE]], %{{.*}})
    // BACK: "stablehlo.gather"{{.*}}partir.nest = #partir.nest<[model: k]>
    %1 = "stablehlo.gather"(%t, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> {partir.nest = #partir.nest<[model: k]>} : (tensor<10x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
    // CHECK: partir.loop "model" [#partir.sum] (%[[K:.*]] : !partir.range<2>) {
    // CHECK: partir.once "add" %{{.*}}[%[[K]]] : tensor<f32>
    // CHECK: stablehlo.reduce
    // BACK: stablehlo.reduce{{.*}}{partir.nest = #partir.nest<[model: i]>}
    %2 = stablehlo.reduce(%t init: %init) applies stablehlo.add across dimensions = [0] {partir.nest = #partir.nest<[model: i]>} : (tensor<10x4xf32>, tensor<f32>) -> tensor<4xf32>
    return %0, %1, %2 : tensor<10xi32>, tensor<3x4xf32>, tensor<4xf32>
  }
}
