"""Collectives, divergence and deadlocks on a simulated mesh, against sums and slices written in NumPy."""

# ruff: noqa: E501 (a line of MLIR is easier to read whole)

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from partir.interp import DeadlockError, InterpreterError, run, run_spmd
from partir.partir_dialect.mesh import Mesh
from partir.partir_dialect.reader import read_module

Array = np.ndarray[Any, np.dtype[Any]]
MESH = Mesh(batch=2, model=4)
ADD = """({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
  })"""


def spmd(
    body: str, arguments: str, results: str, inputs: list[list[Array]], mesh: Mesh = MESH
) -> list[list[Array]]:
    text = f"module {{\nfunc.func @main({arguments}) -> {results} {{\n{body}\n}}\n}}"
    return run_spmd(read_module(text), mesh, inputs)


def tiles(shape: tuple[int, ...], devices: int = 8) -> list[list[Array]]:
    rng = np.random.default_rng(0)
    return [[rng.standard_normal(shape).astype(np.float32)] for _ in range(devices)]


def single(outputs: list[list[Array]]) -> list[Array]:
    return [results[0] for results in outputs]


# ------------------------------------------------------------------------- partir collectives


def test_all_reduce_over_one_axis() -> None:
    inputs = tiles((2, 3))
    body = '  %0 = partir.all_reduce "add" ["model"] %a : tensor<2x3xf32>\n  return %0 : tensor<2x3xf32>'
    outputs = single(spmd(body, "%a: tensor<2x3xf32>", "tensor<2x3xf32>", inputs))
    for group in ((0, 1, 2, 3), (4, 5, 6, 7)):
        want = np.sum([inputs[d][0] for d in group], axis=0)
        for device in group:
            np.testing.assert_allclose(outputs[device], want, rtol=1e-6)


@pytest.mark.parametrize(
    ("reducer", "function"), [("max", np.max), ("min", np.min), ("mul", np.prod)]
)
def test_all_reduce_by_other_reducers_over_both_axes(reducer: str, function: Any) -> None:
    inputs = tiles((2, 3))
    body = (
        f'  %0 = partir.all_reduce "{reducer}" ["batch", "model"] %a : tensor<2x3xf32>\n'
        "  return %0 : tensor<2x3xf32>"
    )
    want = function([local[0] for local in inputs], axis=0)
    for output in single(spmd(body, "%a: tensor<2x3xf32>", "tensor<2x3xf32>", inputs)):
        np.testing.assert_allclose(output, want, rtol=1e-6)


def test_all_gather_then_all_slice_is_the_identity_and_orders_axes_major_to_minor() -> None:
    whole = np.arange(16 * 3, dtype=np.float32).reshape(16, 3)
    inputs = [[whole[2 * d : 2 * d + 2]] for d in range(8)]  # batch major, model minor
    body = """  %0 = partir.all_gather %a [["batch", "model"], []] : tensor<2x3xf32> -> tensor<16x3xf32>
  %1 = partir.all_slice %0 [["batch", "model"], []] : tensor<16x3xf32> -> tensor<2x3xf32>
  return %0, %1 : tensor<16x3xf32>, tensor<2x3xf32>"""
    outputs = spmd(body, "%a: tensor<2x3xf32>", "(tensor<16x3xf32>, tensor<2x3xf32>)", inputs)
    for device, (gathered, sliced) in enumerate(outputs):
        np.testing.assert_array_equal(gathered, whole)
        np.testing.assert_array_equal(sliced, inputs[device][0])


def test_all_slice_by_the_minor_axis_first_in_the_list() -> None:
    whole = np.arange(16, dtype=np.float32)
    body = '  %0 = partir.all_slice %a [["model", "batch"]] : tensor<16xf32> -> tensor<2xf32>\n  return %0 : tensor<2xf32>'
    outputs = single(spmd(body, "%a: tensor<16xf32>", "tensor<2xf32>", [[whole]] * 8))
    for device, output in enumerate(outputs):
        position = (device % 4) * 2 + device // 4
        np.testing.assert_array_equal(output, whole[2 * position : 2 * position + 2])


def test_uneven_tiles_are_padded_with_zeros_and_joined_without_them() -> None:
    whole = np.arange(1, 8, dtype=np.float32)  # 7 over batch=2: 4, then over model=4: 1
    body = """  %0 = partir.all_slice %a [["batch", "model"]] : tensor<7xf32> -> tensor<1xf32>
  %1 = partir.all_gather %0 [["batch", "model"]] : tensor<1xf32> -> tensor<7xf32>
  return %0, %1 : tensor<1xf32>, tensor<7xf32>"""
    outputs = spmd(body, "%a: tensor<7xf32>", "(tensor<1xf32>, tensor<7xf32>)", [[whole]] * 8)
    assert [float(tile[0]) for tile, _ in outputs] == [1, 2, 3, 4, 5, 6, 7, 0]
    for _, gathered in outputs:
        np.testing.assert_array_equal(gathered, whole)


def test_reduce_scatter_is_all_reduce_then_slice() -> None:
    inputs = tiles((8, 3))
    body = (
        '  %0 = partir.reduce_scatter "add" [["model"], []] %a : tensor<8x3xf32> -> tensor<2x3xf32>\n'
        "  return %0 : tensor<2x3xf32>"
    )
    outputs = single(spmd(body, "%a: tensor<8x3xf32>", "tensor<2x3xf32>", inputs))
    for device, output in enumerate(outputs):
        group = range(4) if device < 4 else range(4, 8)
        total = np.sum([inputs[d][0] for d in group], axis=0)
        place = device % 4
        np.testing.assert_allclose(output, total[2 * place : 2 * place + 2], rtol=1e-6)


def test_all_to_all_moves_an_axis_between_dimensions() -> None:
    whole = np.arange(8 * 4, dtype=np.float32).reshape(8, 4)
    inputs = [[whole[2 * (d % 4) : 2 * (d % 4) + 2]] for d in range(8)]
    body = """  %0 = partir.all_to_all %a {axes = ["model"], gather_dim = 0 : i64, slice_dim = 1 : i64}
       : tensor<2x4xf32> -> tensor<8x1xf32>
  return %0 : tensor<8x1xf32>"""
    outputs = single(spmd(body, "%a: tensor<2x4xf32>", "tensor<8x1xf32>", inputs))
    for device, output in enumerate(outputs):
        np.testing.assert_array_equal(output, whole[:, device % 4 : device % 4 + 1])


def test_collective_permute_gives_zeros_to_who_receives_nothing() -> None:
    inputs = tiles((2,))
    body = """  %0 = partir.collective_permute %a {source_target_pairs = dense<[[0, 3], [3, 0], [5, 1]]>
       : tensor<3x2xi64>} : tensor<2xf32>
  return %0 : tensor<2xf32>"""
    outputs = single(spmd(body, "%a: tensor<2xf32>", "tensor<2xf32>", inputs))
    source = {3: 0, 0: 3, 1: 5}
    for device, output in enumerate(outputs):
        want = inputs[source[device]][0] if device in source else np.zeros(2, np.float32)
        np.testing.assert_array_equal(output, want)


def test_axis_index_and_partition_id() -> None:
    body = """  %0 = partir.axis_index "batch" : tensor<i32>
  %1 = partir.axis_index "model" : tensor<i32>
  %2 = stablehlo.partition_id : tensor<ui32>
  return %0, %1, %2 : tensor<i32>, tensor<i32>, tensor<ui32>"""
    outputs = spmd(body, "", "(tensor<i32>, tensor<i32>, tensor<ui32>)", [[] for _ in range(8)])
    found = [tuple(map(int, results)) for results in outputs]
    assert found == [(d // 4, d % 4, d) for d in range(8)]


def test_narrow_floats_are_reduced_in_single_precision() -> None:
    values = [
        1.0,
        2**-8,
        2**-8,
        2**-8,
        0,
        0,
        0,
        0,
    ]  # bf16 has 8 bits: added one by one nothing changes
    inputs = [[np.array([v], ml_dtypes.bfloat16)] for v in values]
    body = '  %0 = partir.all_reduce "add" ["batch", "model"] %a : tensor<1xbf16>\n  return %0 : tensor<1xbf16>'
    outputs = single(spmd(body, "%a: tensor<1xbf16>", "tensor<1xbf16>", inputs))
    want = np.float32(1 + 3 * 2**-8).astype(ml_dtypes.bfloat16)
    assert all(output[0] == want for output in outputs) and float(want) > 1


# ------------------------------------------------------------------------- StableHLO collectives


def stablehlo(op: str, types: str, inputs: list[list[Array]], module: str = "") -> list[Array]:
    source, result = types.split(" -> ")
    text = (
        f"module {module} {{\nfunc.func @main(%a: {source}) -> {result} {{\n  %0 = {op} : ({source}) -> {result}\n"
        f"  return %0 : {result}\n}}\n}}"
    )
    return single(run_spmd(read_module(text), MESH, inputs))


CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def test_stablehlo_all_reduce_by_device_numbers() -> None:
    inputs = tiles((3,))
    groups = "replica_groups = dense<[[0, 5], [1, 4], [2, 7], [3, 6]]> : tensor<4x2xi64>"
    op = f'"stablehlo.all_reduce"(%a) <{{{CHANNEL}, {groups}, use_global_device_ids}}> {ADD}'
    outputs = stablehlo(op, "tensor<3xf32> -> tensor<3xf32>", inputs)
    partner = {0: 5, 5: 0, 1: 4, 4: 1, 2: 7, 7: 2, 3: 6, 6: 3}
    for device, output in enumerate(outputs):
        np.testing.assert_allclose(
            output, inputs[device][0] + inputs[partner[device]][0], rtol=1e-6
        )


def test_stablehlo_all_reduce_without_channel_is_over_replicas() -> None:
    inputs = tiles((3,))
    groups = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
    op = f'"stablehlo.all_reduce"(%a) <{{{groups}}}> {ADD}'
    module = "attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 4 : i32}"
    outputs = stablehlo(op, "tensor<3xf32> -> tensor<3xf32>", inputs, module)
    for device, output in enumerate(outputs):
        other = (device + 4) % 8  # the same partition of the other replica
        np.testing.assert_allclose(output, inputs[device][0] + inputs[other][0], rtol=1e-6)


def test_stablehlo_all_reduce_over_replicas_and_partitions() -> None:
    inputs = tiles((3,))
    groups = "replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>"
    op = f'"stablehlo.all_reduce"(%a) <{{{CHANNEL}, {groups}}}> {ADD}'
    module = "attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 4 : i32}"
    outputs = stablehlo(op, "tensor<3xf32> -> tensor<3xf32>", inputs, module)
    for device, output in enumerate(outputs):
        group = range(4) if device < 4 else range(4, 8)
        np.testing.assert_allclose(output, np.sum([inputs[d][0] for d in group], axis=0), rtol=1e-6)


def test_group_order_is_the_order_of_shards() -> None:
    inputs = tiles((1,))
    groups = "replica_groups = dense<[[3, 1, 2, 0], [4, 5, 6, 7]]> : tensor<2x4xi64>"
    op = f'"stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, {CHANNEL}, {groups}, use_global_device_ids}}>'
    outputs = stablehlo(op, "tensor<1xf32> -> tensor<4xf32>", inputs)
    for device, order in ((0, (3, 1, 2, 0)), (6, (4, 5, 6, 7))):
        np.testing.assert_array_equal(outputs[device], [inputs[d][0][0] for d in order])


def test_stablehlo_reduce_scatter_and_all_to_all() -> None:
    inputs = tiles((4, 2))
    groups = "replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>"
    op = f'"stablehlo.reduce_scatter"(%a) <{{scatter_dimension = 0 : i64, {CHANNEL}, {groups}, use_global_device_ids}}> {ADD}'
    outputs = stablehlo(op, "tensor<4x2xf32> -> tensor<1x2xf32>", inputs)
    for device, output in enumerate(outputs):
        group = range(4) if device < 4 else range(4, 8)
        total = np.sum([inputs[d][0] for d in group], axis=0)
        np.testing.assert_allclose(output, total[device % 4 : device % 4 + 1], rtol=1e-6)
    op = (
        '"stablehlo.all_to_all"(%a) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 4 : i64, '
        f"{CHANNEL}, {groups}}}>"
    )
    outputs = stablehlo(op, "tensor<4x2xf32> -> tensor<1x8xf32>", inputs)
    for device, output in enumerate(outputs):
        group = range(4) if device < 4 else range(4, 8)
        k = device % 4
        np.testing.assert_array_equal(
            output, np.concatenate([inputs[d][0][k : k + 1] for d in group], axis=1)
        )


def test_stablehlo_permute_and_broadcast() -> None:
    inputs = tiles((2,))
    op = f'"stablehlo.collective_permute"(%a) <{{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>, {CHANNEL}}}>'
    outputs = stablehlo(op, "tensor<2xf32> -> tensor<2xf32>", inputs)
    np.testing.assert_array_equal(outputs[0], inputs[1][0])
    np.testing.assert_array_equal(outputs[5], np.zeros(2))
    op = f'"stablehlo.collective_broadcast"(%a) <{{replica_groups = dense<[[2, 0, 1]]> : tensor<1x3xi64>, {CHANNEL}}}>'
    outputs = stablehlo(op, "tensor<2xf32> -> tensor<2xf32>", inputs)
    for device in range(8):
        want = inputs[2][0] if device in (0, 1, 2) else np.zeros(2)
        np.testing.assert_array_equal(outputs[device], want)


def test_replica_groups_by_mesh_axes() -> None:
    inputs = tiles((3,))
    axes = (
        '#stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, '
        '#stablehlo.mesh_axis<name = "y", size = 4>]>, axes = [#stablehlo.axis_ref<name = "y">]>'
    )
    op = f'"stablehlo.all_reduce"(%a) <{{{CHANNEL}, replica_groups = {axes}, use_global_device_ids}}> {ADD}'
    outputs = stablehlo(op, "tensor<3xf32> -> tensor<3xf32>", inputs)
    for device, output in enumerate(outputs):
        group = range(4) if device < 4 else range(4, 8)
        np.testing.assert_allclose(output, np.sum([inputs[d][0] for d in group], axis=0), rtol=1e-6)


# ------------------------------------------------------------------------- divergence, deadlocks

BRANCHES = """  %r = "stablehlo.if"(%p) ({
    THEN
    stablehlo.return %t : tensor<2xf32>
  }, {
    %u = stablehlo.negate %a : tensor<2xf32>
    stablehlo.return %u : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<2xf32>
  return %r : tensor<2xf32>"""
REDUCE = 'partir.all_reduce "add" ["model"] %a : tensor<2xf32>'


def branch(then: str, predicate: list[bool]) -> list[Array]:
    inputs = [[*local, np.array(p)] for local, p in zip(tiles((2,)), predicate, strict=True)]
    body = BRANCHES.replace("THEN", f"%t = {then}")
    return single(spmd(body, "%a: tensor<2xf32>, %p: tensor<i1>", "tensor<2xf32>", inputs))


def test_devices_may_take_different_branches() -> None:
    predicate = [True, False, True, True, False, False, True, False]
    outputs = branch("stablehlo.add %a, %a : tensor<2xf32>", predicate)
    for device, ((x,), p) in enumerate(zip(tiles((2,)), predicate, strict=True)):
        np.testing.assert_array_equal(outputs[device], 2 * x if p else -x)


def test_a_whole_group_may_meet_in_a_branch() -> None:
    outputs = branch(REDUCE, [True] * 4 + [False] * 4)
    inputs = tiles((2,))
    np.testing.assert_allclose(
        outputs[1], np.sum([inputs[d][0] for d in range(4)], axis=0), rtol=1e-6
    )
    np.testing.assert_array_equal(outputs[6], -inputs[6][0])


def test_a_group_split_across_branches_is_a_deadlock() -> None:
    with pytest.raises(
        DeadlockError, match=r"devices \[0, 1, 2\] of the group \[0, 1, 2, 3\].*not by \[3\]"
    ):
        branch(REDUCE, [True] * 3 + [False] * 5)


def test_a_permute_needs_every_device() -> None:
    permute = "partir.collective_permute %a {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>} : tensor<2xf32>"
    with pytest.raises(DeadlockError, match="collective_permute"):
        branch(permute, [True] * 4 + [False] * 4)


LOOP = """  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<2xf32>
    cond {
      %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %y = BODY
      stablehlo.return %j, %y : tensor<i32>, tensor<2xf32>
    }
  return %r#1 : tensor<2xf32>"""


def loop(body: str, counts: list[int]) -> list[Array]:
    inputs = [[*local, np.array(n, np.int32)] for local, n in zip(tiles((2,)), counts, strict=True)]
    text = LOOP.replace("BODY", body)
    return single(spmd(text, "%a: tensor<2xf32>, %n: tensor<i32>", "tensor<2xf32>", inputs))


def test_devices_may_leave_a_loop_at_different_times() -> None:
    counts = [0, 3, 1, 2, 0, 0, 5, 1]
    outputs = loop("stablehlo.add %x, %x : tensor<2xf32>", counts)
    for output, (x,), count in zip(outputs, tiles((2,)), counts, strict=True):
        np.testing.assert_allclose(output, x * 2**count, rtol=1e-6)


def test_a_collective_in_a_loop_is_run_as_often_as_its_group_agrees() -> None:
    outputs = loop('partir.all_reduce "add" ["model"] %x : tensor<2xf32>', [2] * 4 + [1] * 4)
    inputs = tiles((2,))
    first = np.sum([inputs[d][0] for d in range(4)], axis=0)
    np.testing.assert_allclose(outputs[3], 4 * first, rtol=1e-6)
    np.testing.assert_allclose(
        outputs[4], np.sum([inputs[d][0] for d in range(4, 8)], axis=0), rtol=1e-6
    )


def test_leaving_a_loop_before_a_collective_is_a_deadlock() -> None:
    with pytest.raises(DeadlockError, match="but not by"):
        loop('partir.all_reduce "add" ["model"] %x : tensor<2xf32>', [2, 2, 2, 1, 0, 0, 0, 0])


# ------------------------------------------------------------------------- the machine


def test_what_is_equal_on_all_devices_is_computed_once() -> None:
    seen: list[int] = []
    text = """func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = stablehlo.tanh %a : tensor<2xf32>
  %1 = stablehlo.add %0, %b : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}"""
    same = np.ones(2, np.float32)
    inputs = [[same.copy(), np.full(2, d // 4, np.float32)] for d in range(8)]
    outputs = run_spmd(read_module(text), MESH, inputs, observe=lambda d, v, x: seen.append(d))
    assert len({id(results[0]) for results in outputs}) == 1
    assert len({id(results[1]) for results in outputs}) == 2
    assert seen == [*range(8), *range(8)]


def test_observe_sees_values_in_order_for_every_iteration() -> None:
    seen: list[str] = []
    module = read_module(
        "func.func @main(%a: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {\n"
        + LOOP.replace("BODY", "stablehlo.add %x, %x : tensor<2xf32>")
        + "\n}"
    )
    inputs = [np.ones(2, np.float32), np.array(2, np.int32)]
    run(module, inputs, observe=lambda value, array: seen.append(value.owner.name))  # type: ignore[union-attr]
    step = ["stablehlo.compare", "stablehlo.add", "stablehlo.add"]
    assert (
        seen
        == ["stablehlo.constant"] * 2 + step * 2 + ["stablehlo.compare"] + ["stablehlo.while"] * 2
    )


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([[np.ones(2, np.float32)]] * 7, "inputs for 8 devices"),
        ([[np.ones(3, np.float32)]] * 8, "argument 'a'"),
        ([[np.ones(2, np.float64)]] * 8, "argument 'a' is tensor<2xf32>, got: 2 of float64"),
        ([[]] * 8, "takes 1 arguments, got: 0"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(inputs: list[list[Array]], message: str) -> None:
    body = "  return %a : tensor<2xf32>"
    with pytest.raises(InterpreterError, match=message):
        spmd(body, '%a: tensor<2xf32> loc("a")', "tensor<2xf32>", inputs)


def test_a_partir_collective_needs_a_mesh() -> None:
    text = f"func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {{\n  %0 = {REDUCE}\n  return %0 : tensor<2xf32>\n}}"
    with pytest.raises(InterpreterError, match="run_spmd"):
        run(read_module(text), [np.ones(2, np.float32)])


def test_an_op_or_call_without_a_meaning_is_named() -> None:
    text = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.custom_call @TopQ(%a) : (tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}"
    with pytest.raises(InterpreterError, match="did you mean 'TopK'") as error:
        run(read_module(text), [np.ones(2, np.float32)])
    assert "while interpreting stablehlo.custom_call" in error.value.__notes__[0]
