// RUN: partir-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: an axis never nests in itself, got: batch twice
module attributes {a = #partir.nest<[batch: i, batch: j]>} {}

// -----
// CHECK: a reducer is one of add, and, max, min, mul, or, got: sum
module attributes {a = #partir.nest<[batch: pending sum]>} {}

// -----
// CHECK: a nest entry is a factor's letter, 'any' or 'pending <reducer>', got: rows
module attributes {a = #partir.nest<[batch: rows]>} {}

// -----
// CHECK: axis named twice in the mesh: 'batch'
module attributes {a = #partir.mesh<"batch"=4, "batch"=2>} {}

// -----
// CHECK: axis size must be at least 1, got: batch=0
module attributes {a = #partir.mesh<"batch"=0>} {}

// -----
// CHECK: a dimension is at least 0, got: -1
module attributes {a = #partir.tile<-1>} {}
