// RUN: partir-opt %s -p partir-verify | filecheck %s

// Uneven tiles are legal: 6 rows on four devices, 7 columns on two. So are axes that share a
// dimension, and the carries of control flow.

module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>, partir.form = "nests"} {
  // CHECK-LABEL: func.func @main
  func.func @main(%p: tensor<i1> {partir.nest = #partir.nest<[]>}, %x: tensor<6x7xf32> {partir.nest = #partir.nest<[batch: i, model: i]>}) -> (tensor<6x7xf32> {partir.nest = #partir.nest<[batch: any]>}) {
    // CHECK: stablehlo.tanh %{{.*}} {partir.nest = #partir.nest<[model: j, batch: i]>} : tensor<6x7xf32>
    %0 = stablehlo.tanh %x {partir.nest = #partir.nest<[model: j, batch: i]>} : tensor<6x7xf32>
    // CHECK: "stablehlo.if"
    %1 = "stablehlo.if"(%p) ({
      %2 = stablehlo.negate %0 {partir.nest = #partir.nest<[]>} : tensor<6x7xf32>
      stablehlo.return %2 : tensor<6x7xf32>
    }, {
      stablehlo.return %0 : tensor<6x7xf32>
    // CHECK: partir.carries = [#partir.nest<[batch: i]>]
    }) {partir.carries = [#partir.nest<[batch: i]>]} : (tensor<i1>) -> tensor<6x7xf32>
    return %1 : tensor<6x7xf32>
  }
}
