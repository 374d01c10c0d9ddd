// RUN: partir-opt %s -p partir-prepare --split-input-file --verify-diagnostics | filecheck %s

// CHECK: model.py:7:3: recursion cannot be inlined, got: a call of @f
func.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @g(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @g(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @f(%x) : (tensor<8xf32>) -> tensor<8xf32> loc("model.py":7:3)
  return %0 : tensor<8xf32>
}

// -----

// CHECK: model.py:9:1: a call needs a function with a body, got: @outside
func.func private @outside(tensor<8xf32>) -> tensor<8xf32>
func.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @outside(%x) : (tensor<8xf32>) -> tensor<8xf32> loc("model.py":9:1)
  return %0 : tensor<8xf32>
}
