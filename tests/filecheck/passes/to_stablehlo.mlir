// RUN: partir-opt %s -p partir-to-stablehlo | filecheck %s

// Groups cover all devices, ordered by the position along the axes; positions come from partition_id.

// CHECK: module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}
module attributes {partir.mesh = #partir.mesh<"batch"=4, "model"=2>} {
  func.func @main(%x: tensor<2x8xf32>) -> tensor<8x4xf32> {
    // CHECK: stablehlo.partition_id
    // CHECK: "stablehlo.all_gather"(%x)
    // CHECK-SAME: all_gather_dim = 0 : i64
    // CHECK-SAME: channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>
    // CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]>
    // CHECK-SAME: use_global_device_ids
    %0 = partir.all_gather %x [["batch"], []] : tensor<2x8xf32> -> tensor<8x8xf32>
    // CHECK: "stablehlo.all_reduce"
    // CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]>
    // CHECK: stablehlo.maximum
    %1 = partir.all_reduce "max" ["model"] %0 : tensor<8x8xf32>
    // CHECK: "stablehlo.reduce_scatter"
    // CHECK-SAME: scatter_dimension = 0 : i64
    %2 = partir.reduce_scatter "add" [["batch"], []] %1 : tensor<8x8xf32> -> tensor<2x8xf32>
    // CHECK: "stablehlo.all_to_all"
    // CHECK-SAME: concat_dimension = 0 : i64
    // CHECK-SAME: split_count = 4 : i64, split_dimension = 1 : i64
    %3 = partir.all_to_all %2 {axes = ["batch"], gather_dim = 0 : i64, slice_dim = 1 : i64} : tensor<2x8xf32> -> tensor<8x2xf32>
    // CHECK: "stablehlo.collective_permute"
    // CHECK-SAME{LITERAL}: source_target_pairs = dense<[[0, 1], [1, 0]]>
    %4 = partir.collective_permute %3 {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : tensor<8x2xf32>
    // CHECK: stablehlo.dynamic_slice {{.*}} sizes = [8, 4]
    %5 = partir.all_slice %0 [[], ["model"]] : tensor<8x8xf32> -> tensor<8x4xf32>
    return %5 : tensor<8x4xf32>
  }
}
