"""Do ops made from Python values come out as MLIR infers them? jaxlib verifies each one's text."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from inspect import signature

import pytest
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FunctionType,
    ModuleOp,
    TensorType,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from partir.partir_dialect import chlo, sdy, stablehlo
from partir.partir_dialect.printer import print_module
from partir.partir_dialect.stablehlo_reduction import combiner_of, combiner_region

CHILD = """
import json, sys
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo
registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context = ir.Context()
context.append_dialect_registry(registry)
context.load_all_available_dialects()
for dialect in (stablehlo, sdy, chlo):
    dialect.register_dialect(context)
faults = {}
with context:
    for name, text in json.load(sys.stdin).items():
        try:
            ir.Module.parse(text).operation.verify()
        except Exception as error:
            faults[name] = str(error)
print(json.dumps(faults))
"""

X = TensorType(f32, [4, 8])
Y = TensorType(f32, [8, 6])
N = TensorType(i32, [4, 8])
P = TensorType(i1, [4, 8])
S = TensorType(f32, [])
INDEX = TensorType(i32, [])
B = TensorType(i1, [])
A = TensorType(f32, [2, 4, 8])
Q = TensorType(i32, [3, 1])
U = TensorType(f32, [3, 8])
TYPES = (X, Y, N, P, S, INDEX, B, A, Q, U)
GROUPS = [[0, 1], [2, 3]]

Builder = Callable[..., Operation]


def branch(value: SSAValue) -> Region:
    return Region(Block([stablehlo.ReturnOp([value])]))


def build_while(s: SSAValue, i: SSAValue) -> Operation:
    op = stablehlo.WhileOp([i, s])
    count, total = op.cond.block.args
    compare = stablehlo.CompareOp(count, count, "LT", "SIGNED")
    op.cond.block.add_ops([compare, stablehlo.ReturnOp([compare.result])])
    count, total = op.body.block.args
    double = stablehlo.AddOp(total, total)
    op.body.block.add_ops([double, stablehlo.ReturnOp([count, double.result])])
    return op


def gather(x: SSAValue, q: SSAValue) -> Operation:
    numbers = stablehlo.GatherAttr.of(
        offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1
    )
    return stablehlo.GatherOp(x, q, numbers, [1, 8], TensorType(f32, [3, 8]))


def scatter(x: SSAValue, q: SSAValue, u: SSAValue) -> Operation:
    numbers = stablehlo.ScatterAttr.of(
        update_window_dims=[1],
        inserted_window_dims=[0],
        scatter_dims_to_operand_dims=[0],
        index_vector_dim=1,
    )
    return stablehlo.ScatterOp([x], q, [u], numbers, "add", unique_indices=True)


def manual(x: SSAValue) -> Operation:
    local = TensorType(f32, [2, 8])
    block = Block(arg_types=[local])
    block.add_op(sdy.ReturnOp([block.args[0]]))
    cut = sdy.Sharding("mesh", (sdy.DimSharding((sdy.AxisRef("x"),)), sdy.DimSharding()))
    return sdy.ManualComputationOp([x], [cut], [cut], ["x"], Region(block), [X])


def constraint(x: SSAValue) -> Operation:
    dims = (sdy.DimSharding((sdy.AxisRef("x"),), True, 1), sdy.DimSharding())
    return sdy.ShardingConstraintOp(x, sdy.Sharding("mesh", dims))


ZERO = DenseIntOrFPElementsAttr.from_list(TensorType(f32, [4, 8]), [0.0])

# What is built of arguments named as the types above, in lower case.
CASES: dict[str, Builder] = {
    "constant": lambda: stablehlo.ConstantOp(ZERO),
    "iota": lambda: stablehlo.IotaOp(1, N),
    "add": lambda x: stablehlo.AddOp(x, x),
    "maximum": lambda x: stablehlo.MaximumOp(x, x),
    "tanh": lambda x: stablehlo.TanhOp(x, X),
    "not": lambda p: stablehlo.NotOp(p, P),
    "abs": lambda x: stablehlo.AbsOp(operand=x),
    "complex": lambda x: stablehlo.ComplexOp(x, x),
    "abs of complex": lambda x: stablehlo.AbsOp(stablehlo.ComplexOp(x, x)),
    "imag": lambda x: stablehlo.ImagOp(stablehlo.ComplexOp(x, x)),
    "is_finite": lambda x: stablehlo.IsFiniteOp(x=x),
    "broadcast_in_dim": lambda x: stablehlo.BroadcastInDimOp(x, [1, 2], A),
    "reshape": lambda x: stablehlo.ReshapeOp(x, [2, 16]),
    "transpose": lambda a: stablehlo.TransposeOp(a, [2, 0, 1]),
    "reverse": lambda a: stablehlo.ReverseOp(a, [0, 2]),
    "slice": lambda x: stablehlo.SliceOp(x, [1, 0], [4, 8], [1, 3]),
    "dynamic_slice": lambda x, i: stablehlo.DynamicSliceOp(x, [i, i], [2, 8]),
    "dynamic_update_slice": lambda x, u, i: stablehlo.DynamicUpdateSliceOp(x, u, [i, i]),
    "compare": lambda x: stablehlo.CompareOp(x, x, "GE", "FLOAT"),
    "select": lambda p, x: stablehlo.SelectOp(p, x, x),
    "select by one": lambda b, x: stablehlo.SelectOp(b, x, x),
    "clamp": lambda s, x: stablehlo.ClampOp(s, x, s),
    "convert": lambda x: stablehlo.ConvertOp(x, i64),
    "concatenate": lambda x, u: stablehlo.ConcatenateOp([x, u, x], 0),
    "pad": lambda x, s: stablehlo.PadOp(x, s, [1, -2], [0, 3], [2, 0]),
    "reduce": lambda x, s: stablehlo.ReduceOp([x], [s], [0], "maximum"),
    "sort": lambda x, n: stablehlo.SortOp([x, n], 1, "GT"),
    "gather": gather,
    "scatter": scatter,
    "dot_general": lambda x, y: stablehlo.DotGeneralOp(x, y, contracting=([1], [0])),
    "dot_general in batches": lambda a: stablehlo.DotGeneralOp(
        a, a, contracting=([2], [2]), batching=([0], [0]), precision=["HIGH", "DEFAULT"]
    ),
    "dot_general to f64": lambda x, y: stablehlo.DotGeneralOp(
        x, y, contracting=([1], [0]), element_type=i64
    ),
    "all_reduce": lambda x: stablehlo.AllReduceOp(x, GROUPS, "minimum"),
    "all_gather": lambda x: stablehlo.AllGatherOp(x, 1, GROUPS),
    "reduce_scatter": lambda x: stablehlo.ReduceScatterOp(x, 1, GROUPS),
    "all_to_all": lambda x: stablehlo.AllToAllOp(x, 0, 1, GROUPS),
    "collective_permute": lambda x: stablehlo.CollectivePermuteOp(x, [[0, 1], [1, 0]]),
    "partition_id": stablehlo.PartitionIdOp,
    "replica_id": stablehlo.ReplicaIdOp,
    "while": build_while,
    "case": lambda i, x: stablehlo.CaseOp(i, [branch(x), branch(x)], [X]),
    "if": lambda b, x: stablehlo.IfOp(b, branch(x), branch(x), [X]),
    "optimization_barrier": lambda x, i: stablehlo.OptimizationBarrierOp([x, i]),
    "tuple": lambda x, i: stablehlo.TupleOp([x, i]),
    "get_tuple_element": lambda x, i: stablehlo.GetTupleElementOp(stablehlo.TupleOp([x, i]), 1),
    "custom_call": lambda x: stablehlo.CustomCallOp("f", [x], [X], has_side_effect=True),
    "after_all": lambda: stablehlo.AfterAllOp([stablehlo.CreateTokenOp()]),
    "get_dimension_size": lambda x: stablehlo.GetDimensionSizeOp(x, 1),
    "top_k": lambda x: chlo.TopKOp(x, 3),
    "erf": lambda x: chlo.ErfOp(operand=x),
    "zeta": lambda x: chlo.ZetaOp(x, x),
    "is_inf": lambda x: chlo.IsInfOp(operand=x),
    "broadcast_add": lambda x, s: chlo.BROADCAST_OPS["add"](x, s, X),
    "sharding_constraint": constraint,
    "manual_computation": manual,
    "sharding_group": lambda x: sdy.ShardingGroupOp(x, 3),
    "propagation_barrier": lambda x: sdy.PropagationBarrierOp(x, "FORWARD"),
}


def module_of(build: Builder) -> ModuleOp:
    """A module whose main has the types above as arguments and the op's results as results."""
    block = Block(arg_types=TYPES)
    arguments = dict(zip("xynpsibaqu", block.args, strict=True))
    op = build(*(arguments[name] for name in signature(build).parameters))
    inner = [value.owner for value in op.operands if isinstance(value.owner, Operation)]
    block.add_ops([*dict.fromkeys(inner), op, ReturnOp(*op.results)])
    type_ = FunctionType.from_lists(list(TYPES), [value.type for value in op.results])
    mesh = sdy.MeshOp("mesh", sdy.MeshValue((("x", 2), ("y", 2))))
    return ModuleOp([mesh, FuncOp("main", type_, Region(block))])


def test_ops_from_python_values_are_what_mlir_infers() -> None:
    texts: dict[str, str] = {}
    for name, build in CASES.items():
        module = module_of(build)
        module.verify()
        texts[name] = print_module(module)
    child = [sys.executable, "-c", CHILD]
    done = subprocess.run(
        child, input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {}


@pytest.mark.parametrize("name", ["add", "maximum", "minimum", "multiply", "and", "or", "xor"])
def test_the_op_of_a_combiner_is_found_again(name: str) -> None:
    assert combiner_of(combiner_region(name, i1)) == name
    assert combiner_of(combiner_region(f"stablehlo.{name}", i1)) == name


def two_args(*ops: Callable[[SSAValue, SSAValue], Operation]) -> Region:
    block = Block(arg_types=[S, S])
    values: list[SSAValue] = list(block.args)
    for make in ops:
        op = make(values[-2], values[-1])
        block.add_op(op)
        values.append(op.results[0])
    block.add_op(stablehlo.ReturnOp([values[-1]]))
    return Region(block)


def test_other_bodies_have_no_one_combiner() -> None:
    assert combiner_of(two_args(stablehlo.SubtractOp)) is None
    assert combiner_of(two_args(stablehlo.AddOp, stablehlo.MultiplyOp)) is None
    assert combiner_of(two_args(lambda a, _: stablehlo.AddOp(a, a))) is None
    assert combiner_of(two_args(lambda a, b: stablehlo.AddOp(b, a))) == "add"
    assert combiner_of(two_args()) is None
    assert combiner_of(Region()) is None


def test_unknown_combiners_are_refused() -> None:
    with pytest.raises(KeyError):
        combiner_region("subtract", f32)


def types_of(op: Operation) -> list[Attribute]:
    return [value.type for value in op.results]


def test_a_slice_counts_what_it_takes() -> None:
    x = Block(arg_types=[X]).args[0]
    assert types_of(stablehlo.SliceOp(x, [0, 1], [0, 8], [1, 3])) == [TensorType(f32, [0, 3])]


def test_groups_of_unequal_size_are_filled() -> None:
    x = Block(arg_types=[X]).args[0]
    groups = stablehlo.AllReduceOp(x, [[0], [1, 2]]).replica_groups
    assert isinstance(groups, DenseIntOrFPElementsAttr)
    assert (groups.get_values(), groups.get_shape()) == ((0, -1, 1, 2), (2, 2))
