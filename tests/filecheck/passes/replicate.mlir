// RUN: partir-opt %s -p 'partir-replicate{value=h axis=model mesh="model=2"},partir-replicate{value=x axis=model}' | filecheck %s

// An argument is decided to be whole; an intermediate value gets a mark that its users read.

// CHECK: %x: tensor<8x8xf32> {partir.nest = #partir.nest<[model: any]>}
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: %[[H:.*]] = stablehlo.tanh %x
  // CHECK: %[[M:.*]] = partir.replicate ["model"] %[[H]] {partir.nest = #partir.nest<[]>}
  %h = stablehlo.tanh %x : tensor<8x8xf32>
  // CHECK: stablehlo.negate %[[M]]
  %y = stablehlo.negate %h : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
