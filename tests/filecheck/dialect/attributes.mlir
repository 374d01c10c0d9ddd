// RUN: partir-opt %s | partir-opt | filecheck %s
// RUN: partir-opt %s --print-op-generic | partir-opt | filecheck %s

// CHECK: partir.mesh = #partir.mesh<"batch"=4, "model.0"=2>
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model.0"=2>} {
  // CHECK: func.func @main(%{{.*}}: tensor<8x6xf32> {partir.border = "8x6xf32 [{batch}, {}]", partir.nest = #partir.nest<[batch: i, model.0: j]>}
  func.func @main(%x: tensor<8x6xf32> {partir.border = "8x6xf32 [{batch}, {}]", partir.nest = #partir.nest<[batch: i, model.0: j]>}) -> tensor<8x6xf32> {
    // CHECK: {partir.nest = #partir.nest<[batch: any, model.0: pending add]>}
    %0 = stablehlo.tanh %x {partir.nest = #partir.nest<[batch: any, model.0: pending add]>} : tensor<8x6xf32>
    // CHECK: {partir.nest = #partir.nest<[]>}
    %1 = stablehlo.tanh %0 {partir.nest = #partir.nest<[]>} : tensor<8x6xf32>
    // Letters after z go on with a; an axis may be quoted.
    // CHECK: {partir.nest = #partir.nest<[batch: z, model.0: a]>}
    %2 = stablehlo.tanh %1 {partir.nest = #partir.nest<["batch": z, "model.0": a]>} : tensor<8x6xf32>
    return %2 : tensor<8x6xf32>
  }
}
