// RUN: partir-opt %s -p 'partir-stop{value=h axis=batch mesh="batch=2"},partir-tile{value=x dim=0 axis=batch},partir-propagate' | filecheck %s

// The axis reaches what is before the mark and nothing behind it.

func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: %[[H:.*]] = stablehlo.tanh %x {partir.nest = #partir.nest<[batch: i]>}
  // CHECK: %[[M:.*]] = partir.stop ["batch"] %[[H]] {partir.nest = #partir.nest<[]>}
  %h = stablehlo.tanh %x : tensor<8x8xf32>
  // CHECK: stablehlo.negate %[[M]] {partir.nest = #partir.nest<[]>}
  %y = stablehlo.negate %h : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
