// RUN: partir-opt %s -p 'partir-tile{value=x dim=0 axis=batch mesh="batch=4,model=2"}' | filecheck %s

// Only the argument is decided; the op waits for partir-propagate.

// CHECK: module attributes {partir.form = "nests", partir.mesh = #partir.mesh<"batch"=4, "model"=2>}
// CHECK: @main(%x: tensor<256x8xf32> {partir.nest = #partir.nest<[batch: i]>})
func.func @main(%x: tensor<256x8xf32>) -> tensor<256x8xf32> {
  // CHECK: stablehlo.tanh %x {partir.nest = #partir.nest<[]>}
  %y = stablehlo.tanh %x : tensor<256x8xf32>
  return %y : tensor<256x8xf32>
}
