// RUN: partir-opt %s -p 'partir-import-shardings' | filecheck %s --check-prefix=CHECK-NESTS
// RUN: partir-opt %s -p 'partir-import-shardings,partir-lower-to-spmd,partir-check-spmd' | filecheck %s --check-prefix=CHECK-SPMD

// A part of an axis refines the mesh; the order of axes is as written; an axis that a closed sharding does not use is decided to be whole; a reshard is a constraint.

// CHECK-NESTS: module attributes {partir.form = "nests", partir.mesh = #partir.mesh<"x"=2, "y.0"=2, "y.1"=2>}
// CHECK-NESTS: @main(%a: tensor<16x8xf32> {partir.nest = #partir.nest<[y.0: i, x: i, y.1: any]>
// CHECK-NESTS-SAME: -> (tensor<16x8xf32> {partir.nest = #partir.nest<[y.1: j, x: any, y.0: any]>
// CHECK-NESTS: %t = stablehlo.tanh %a {partir.nest = #partir.nest<[{{.*}}y.1: j{{.*}}]>}
// CHECK-NESTS: sdy.sharding_constraint %t <@mesh, [{}, {"y":(2)2}]> {partir.nest = #partir.nest<[y.1: j, x: any, y.0: any]>}

// CHECK-SPMD: @main(%a: tensor<4x8xf32> {partir.border = "a: 16x8xf32 [{y.0,x}, {}]"}) -> (tensor<16x4xf32> {partir.border = "result/0: 16x8xf32 [{}, {y.1}]"})
// CHECK-SPMD-NEXT: partir.all_slice %a {{\[\[\], \["y.1"\]\]}}
// CHECK-SPMD-NEXT: %t = stablehlo.tanh {{.*}} : tensor<4x4xf32>
// CHECK-SPMD-NEXT: partir.all_gather %t {{\[\["y.0", "x"\], \[\]\]}}
// CHECK-SPMD-NEXT: return
// CHECK-SPMD-NOT: sdy
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2, "x"}, {}]>} loc("a"))
    -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y":(2)2}]>}) {
  %t = stablehlo.tanh %a : tensor<16x8xf32>
  %r = sdy.reshard %t <@mesh, [{}, {"y":(2)2}]> : tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}
