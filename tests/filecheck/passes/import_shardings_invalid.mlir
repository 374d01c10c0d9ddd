// RUN: not partir-opt %s -p 'partir-import-shardings' 2>&1 | filecheck %s --check-prefix=CHECK-SIZE
// RUN: not partir-opt %s -p 'partir-import-shardings{mesh="x=2,z=2"}' 2>&1 | filecheck %s --check-prefix=CHECK-MESH

// CHECK-SIZE: the sharding of argument arg0: dimension 0 of size 6 cannot be cut in 4 by "x", "y"
// CHECK-MESH: the program's shardings are over the mesh <["x"=2, "y"=2]>, got: x=2,z=2
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) -> tensor<6xf32> {
  return %a : tensor<6xf32>
}
