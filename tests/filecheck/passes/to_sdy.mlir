// RUN: partir-opt %s -p 'partir-tile{value=x dim=0 axis=batch mesh="batch=4,model=2"},partir-tile{value=w1 dim=1 axis=model},partir-propagate,partir-to-sdy' | filecheck %s

// Every argument, result and op says where it is, closed in every dimension; the sum over model that
// the second product leaves is Shardy's to insert. Marks are dropped.

// CHECK: sdy.mesh @mesh = <["batch"=4, "model"=2]>
// CHECK: func.func public @main(%{{.*}}: tensor<256x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"batch"}, {}]>}
// CHECK-SAME: %{{.*}}: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}
// CHECK-SAME: %{{.*}}: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}
// CHECK-SAME: -> (tensor<256x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"batch"}, {}]>})
func.func public @main(%x: tensor<256x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) -> tensor<256x8xf32> {
  // CHECK-NEXT: stablehlo.dot_general {{.*}}sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"batch"}, {"model"}]>]>
  %0 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] : (tensor<256x8xf32>, tensor<8x16xf32>) -> tensor<256x16xf32>
  // CHECK-NEXT: stablehlo.dot_general {{.*}}sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"batch"}, {}]>]>
  %1 = stablehlo.dot_general %0, %w2, contracting_dims = [1] x [0] : (tensor<256x16xf32>, tensor<16x8xf32>) -> tensor<256x8xf32>
  // CHECK-NEXT: return
  return %1 : tensor<256x8xf32>
}
