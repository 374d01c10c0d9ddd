// RUN: partir-opt %s -p 'partir-import-shardings,partir-lower-to-spmd,partir-check-spmd' | filecheck %s

// What is device-local already is not looked into: its operands come as its border says (y is gathered, x sliced), its own collective stays as it is, and its result is cut by the axes that are free inside only after it.

// CHECK: @main(%a: tensor<8x2xf32> {{{.*}}}) -> (tensor<4x2xf32>
// CHECK-NEXT: partir.all_slice %a {{\[\["x"\], \[\]\]}} : tensor<8x2xf32> -> tensor<4x2xf32>
// CHECK-NEXT: %t = stablehlo.tanh {{.*}} : tensor<4x2xf32>
// CHECK-NEXT: partir.all_gather %t {{\[\[\], \["y"\]\]}} : tensor<4x2xf32> -> tensor<4x4xf32>
// CHECK-NEXT: "stablehlo.collective_permute"({{.*}}) <{{.*}}source_target_pairs = dense<{{\[\[0, 2\], \[1, 3\], \[2, 0\], \[3, 1\]\]}}>
// CHECK-NEXT: partir.all_slice {{.*}} {{\[\[\], \["y"\]\]}} : tensor<4x4xf32> -> tensor<4x2xf32>
// CHECK-NEXT: return
// CHECK-NOT: sdy
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) -> tensor<8x4xf32> {
  %t = stablehlo.tanh %a : tensor<8x4xf32>
  %0 = sdy.manual_computation(%t) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x"} (%p: tensor<4x4xf32>) {
    %q = "stablehlo.collective_permute"(%p) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 2], [1, 3], [2, 0], [3, 1]]> : tensor<4x2xi64>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
    sdy.return %q : tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
