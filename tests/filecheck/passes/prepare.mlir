// RUN: partir-opt %s -p partir-prepare --split-input-file | filecheck %s

// Calls are replaced by bodies, also inside the body of a reduce; private functions go.

// CHECK-LABEL: func.func public @main
func.func public @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>) {
  // CHECK: %[[T:.*]] = stablehlo.tanh %[[X:.*]] : tensor<8xf32>
  %0 = func.call @"<lambda>"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK: stablehlo.reduce(%[[X]] init: %{{.*}}) {{.*}}stablehlo.add{{.*}}dimensions = [0]
  %1 = stablehlo.reduce(%x init: %init) across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    reducer(%a: tensor<f32>, %b: tensor<f32>) {
      %2 = func.call @plus(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }
  // CHECK: return %[[T]]
  return %0, %1 : tensor<8xf32>, tensor<f32>
}
// CHECK-NOT: func.func
func.func private @"<lambda>"(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @inner(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @inner(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @plus(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func private @unused(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32>
}

// -----

// Equal ops are merged (constants count as equal), two views of one parameter are not.

// CHECK-LABEL: func.func @merge
func.func @merge(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %c0 = stablehlo.constant dense<2.0> : tensor<4x8xf32>
  %c1 = stablehlo.constant dense<2.0> : tensor<4x8xf32>
  // CHECK: %[[M:.*]] = stablehlo.multiply
  %0 = stablehlo.multiply %x, %c0 : tensor<4x8xf32>
  // CHECK-NOT: stablehlo.multiply
  %1 = stablehlo.multiply %x, %c1 : tensor<4x8xf32>
  // CHECK: %[[W0:.*]] = stablehlo.transpose %{{.*}}, dims = [1, 0]
  %w0 = stablehlo.transpose %w, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK: %[[W1:.*]] = stablehlo.transpose %{{.*}}, dims = [1, 0]
  %w1 = stablehlo.transpose %w, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK: stablehlo.dot_general %[[M]], %[[W0]]
  %2 = stablehlo.dot_general %0, %w0, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  // CHECK: stablehlo.dot_general %[[M]], %[[W1]]
  %3 = stablehlo.dot_general %1, %w1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %4 = stablehlo.add %2, %3 : tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}

// -----

// Each use of a generated value has its own, right before it.

// CHECK-LABEL: func.func @generated
func.func @generated(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c = stablehlo.constant dense<0.9> : tensor<f32>
  %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<8xf32>
  // CHECK-NEXT: %[[C0:.*]] = stablehlo.constant
  // CHECK-NEXT: %[[B0:.*]] = stablehlo.broadcast_in_dim %[[C0]]
  // CHECK-NEXT: stablehlo.multiply %{{.*}}, %[[B0]]
  %0 = stablehlo.multiply %x, %b : tensor<8xf32>
  // CHECK-NEXT: %[[C1:.*]] = stablehlo.constant
  // CHECK-NEXT: %[[B1:.*]] = stablehlo.broadcast_in_dim %[[C1]]
  // CHECK-NEXT: stablehlo.add %{{.*}}, %[[B1]]
  %1 = stablehlo.add %x, %b : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Identities go; what has an effect or a state stays, used or not, equal or not.

// CHECK-LABEL: func.func @effects
func.func @effects(%x: tensor<8xf32>, %k: tensor<2xui64>) -> tensor<8xf32> {
  // CHECK-NOT: stablehlo.reshape
  %0 = stablehlo.reshape %x : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: stablehlo.custom_call @log
  stablehlo.custom_call @log(%0) {has_side_effect = true} : (tensor<8xf32>) -> ()
  // CHECK: stablehlo.rng_bit_generator
  %s0, %b0 = stablehlo.rng_bit_generator %k, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
  // CHECK: stablehlo.rng_bit_generator
  %s1, %b1 = stablehlo.rng_bit_generator %k, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
  // CHECK-NOT: stablehlo.tanh
  %1 = stablehlo.tanh %x : tensor<8xf32>
  %2 = stablehlo.custom_call @pure(%1) : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: return %[[X:.*]] : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Aliases and names of arguments and results stay.

// CHECK-LABEL: func.func public @main
// CHECK-SAME: {tf.aliasing_output = 0 : i32}
// CHECK-SAME: {jax.result_info = "result"}
func.func public @main(%x: tensor<8xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<8xf32> {jax.result_info = "result"}) {
  %0 = func.call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
