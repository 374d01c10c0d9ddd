// RUN: not partir-opt %s -p 'partir-tile{value=z dim=0 axis=batch mesh="batch=4"}' 2>&1 | filecheck %s --check-prefix=CHECK-NAME
// RUN: not partir-opt %s -p 'partir-tile{value=x dim=5 axis=batch mesh="batch=4"}' 2>&1 | filecheck %s --check-prefix=CHECK-DIM
// RUN: not partir-opt %s -p 'partir-tile{value=x dim=0 axis=modle mesh="model=4"}' 2>&1 | filecheck %s --check-prefix=CHECK-AXIS
// RUN: not partir-opt %s -p 'partir-tile{value=x dim=0 axis=batch}' 2>&1 | filecheck %s --check-prefix=CHECK-MESH

// CHECK-NAME: no such value: 'z'
// CHECK-DIM: it has no dimension 5, its rank is 2
// CHECK-AXIS: no such mesh axis: 'modle'; did you mean 'model'?
// CHECK-MESH: the module has no mesh: give one, as in mesh="batch=4,model=2"
func.func @main(%x: tensor<256x6xf32>) -> tensor<256x6xf32> {
  %y = stablehlo.tanh %x : tensor<256x6xf32>
  return %y : tensor<256x6xf32>
}
