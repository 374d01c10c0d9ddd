"""Are operations, memory and time what a person counts by hand?"""

from __future__ import annotations

import pytest

import partir
from partir.cost.device import Device, device_names, find_device, quantity, read_device
from partir.cost.estimate import estimate
from partir.cost.memory import peak_memory
from partir.cost.work import work_of
from partir.engine.plan import Compute
from partir.partir_dialect.errors import PartirError
from partir.runtime.partition import Partitioned

PLAIN = Device("plain", 2**30, 100.0, 10.0, 0.5, 0.25, {"f32": 1000.0, "bf16": 4000.0})


def partitioned(body: str, signature: str, tactics: list[str] | None = None) -> Partitioned:
    text = f"func.func public @main({signature} {{\n{body}\n}}"
    return partir.partition(partir.read_text(text), partir.Mesh(a=2), tactics or [])


def flops(result: Partitioned) -> dict[str, int]:
    """Operations by kind of op."""
    found: dict[str, int] = {}
    for step in result.plan.steps:
        if isinstance(step, Compute):
            kind = result.graph.kinds[step.op]
            found[kind] = found.get(kind, 0) + work_of(result.plan, step).flops
    return {kind: count for kind, count in found.items() if count}


# --- operations ---------------------------------------------------------------------------------

DOT = """%0 = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1]
  : (tensor<4x6x8xf32>, tensor<4x8x10xf32>) -> tensor<4x6x10xf32>
return %0 : tensor<4x6x10xf32>"""
DOT_SIGNATURE = """%x: tensor<4x6x8xf32> loc("x"), %w: tensor<4x8x10xf32> loc("w"))
  -> tensor<4x6x10xf32>"""


@pytest.mark.parametrize(
    ("tactics", "share"),
    [
        ([], 1),
        (["tile x dim=0 axis=a"], 2),
        (["tile x dim=1 axis=a"], 2),
        (["tile x dim=2 axis=a"], 2),
    ],
)
def test_a_product_is_two_operations_a_multiply(tactics: list[str], share: int) -> None:
    assert flops(partitioned(DOT, DOT_SIGNATURE, tactics)) == {
        "stablehlo.dot_general": 2 * 4 * 6 * 8 * 10 // share
    }


def test_a_convolution() -> None:
    body = """%0 = stablehlo.convolution(%x, %k)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<2x6x6x5xf32>
    return %0 : tensor<2x6x6x5xf32>"""
    signature = "%x: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x5xf32>) -> tensor<2x6x6x5xf32>"
    assert flops(partitioned(body, signature)) == {
        "stablehlo.convolution": 2 * (2 * 6 * 6 * 5) * (3 * 3 * 3)
    }


def test_elementwise_and_reductions_and_moves() -> None:
    body = """%0 = stablehlo.multiply %x, %x : tensor<4x8xf32>
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [1]
      : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.reshape %1 : (tensor<4xf32>) -> tensor<2x2xf32>
    return %2 : tensor<2x2xf32>"""
    found = flops(partitioned(body, "%x: tensor<4x8xf32>) -> tensor<2x2xf32>"))
    assert found == {"stablehlo.multiply": 32, "stablehlo.reduce": 32}


def test_a_loop_body_counts_as_often_as_it_runs() -> None:
    body = """%zero = stablehlo.constant dense<0> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4x4xf32>
    cond {
      %n = stablehlo.constant dense<5> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %w = stablehlo.dot_general %v, %v, contracting_dims = [1] x [0]
        : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      stablehlo.return %j, %w : tensor<i32>, tensor<4x4xf32>
    }
    return %r#1 : tensor<4x4xf32>"""
    result = partitioned(body, "%x: tensor<4x4xf32>) -> tensor<4x4xf32>")
    total = estimate(result.plan, PLAIN).flops
    products = 5 * 2 * 4 * 4 * 4
    assert products <= total <= products + 5 * 3


# --- memory -------------------------------------------------------------------------------------


def peak(result: Partitioned, donated: tuple[int, ...] = ()) -> int:
    return peak_memory(result.plan, donated).bytes


CHAIN = """%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
  : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
%1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
  : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
return %1 : tensor<8x8xf32>"""
CHAIN_SIGNATURE = '%x: tensor<8x8xf32> loc("x"), %w: tensor<8x8xf32> loc("w")) -> tensor<8x8xf32>'
MATRIX = 8 * 8 * 4


def test_arguments_live_throughout_unless_donated() -> None:
    result = partitioned(CHAIN, CHAIN_SIGNATURE)
    assert peak(result) == 4 * MATRIX  # x, w, both products
    assert peak(result, (0,)) == 3 * MATRIX  # x is gone when the second product comes


def test_an_elementwise_op_writes_in_place() -> None:
    body = """%0 = stablehlo.tanh %x : tensor<8x8xf32>
    %1 = stablehlo.tanh %0 : tensor<8x8xf32>
    return %1 : tensor<8x8xf32>"""
    result = partitioned(body, "%x: tensor<8x8xf32>) -> tensor<8x8xf32>")
    assert peak(result) == 2 * MATRIX
    assert peak(result, (0,)) == MATRIX


def test_constants_and_broadcasts_take_none() -> None:
    body = """%c = stablehlo.constant dense<1.0> : tensor<f32>
    %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
    %0 = stablehlo.add %x, %b : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>"""
    result = partitioned(body, "%x: tensor<8x8xf32>) -> tensor<8x8xf32>")
    assert peak(result) == 2 * MATRIX


def test_a_gathered_operand_counts_while_it_is_used() -> None:
    result = partitioned(CHAIN, CHAIN_SIGNATURE, ["replicate x axis=a", "tile w dim=0 axis=a"])
    counts = result.plan.counts()
    assert counts["all_gather"]["count"] + counts["all_reduce"]["count"] > 0
    assert peak(result) > result.plan.argument_bytes() + MATRIX


def test_the_live_values_at_the_peak_are_named() -> None:
    result = partitioned(CHAIN, CHAIN_SIGNATURE)
    found = peak_memory(result.plan)
    assert sum(result.plan.values[v].bytes for v in found.live) == found.bytes


def test_what_a_loop_reads_lives_until_it_is_over() -> None:
    body = """%zero = stablehlo.constant dense<0> : tensor<i32>
    %big = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %r:2 = stablehlo.while(%i = %zero, %v = %y) : tensor<i32>, tensor<8x8xf32>
    cond {
      %n = stablehlo.constant dense<5> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %a = stablehlo.dot_general %v, %big, contracting_dims = [1] x [0]
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %b = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      stablehlo.return %j, %b : tensor<i32>, tensor<8x8xf32>
    }
    return %r#1 : tensor<8x8xf32>"""
    signature = "%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32>"
    # x, y, big and, in the second product of the body, a and b beside the scalars
    assert 5 * MATRIX <= peak(partitioned(body, signature)) <= 6 * MATRIX + 32


# --- time and devices ---------------------------------------------------------------------------


def test_an_op_takes_the_longer_of_computing_and_moving() -> None:
    result = partitioned(DOT, DOT_SIGNATURE)
    found = estimate(result.plan, PLAIN)
    moved = 4 * (4 * 6 * 8 + 4 * 8 * 10 + 4 * 6 * 10)
    assert found.seconds == found.compute_seconds == max(found.flops / 1000, moved / 100)


def test_a_collective_takes_launch_hops_and_bytes() -> None:
    result = partitioned(DOT, DOT_SIGNATURE, ["tile x dim=2 axis=a"])
    found = estimate(result.plan, PLAIN)
    size = 4 * 6 * 10 * 4
    ring = 2 * size * (2 - 1) / 2
    assert found.collective_seconds == 0.25 + 2 * (2 - 1) * 0.5 + ring / 10
    assert result.plan.counts()["all_reduce"]["ring_bytes"] == ring


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("16GiB", "B", 2**34),
        ("80GB", "B", 80e9),
        ("25GiB/s", "B/s", 25 * 2**30),
        ("1.5kB", "B", 1500),
        ("512", "B", 512),
        ("4us", "s", 4e-6),
        ("12 ns", "s", 12e-9),
    ],
)
def test_quantities(text: str, unit: str, value: float) -> None:
    assert quantity(text, unit) == pytest.approx(value)


@pytest.mark.parametrize(("text", "unit"), [("16GiB/s", "B"), ("fast", "B/s"), ("4us", "B")])
def test_quantities_that_are_none(text: str, unit: str) -> None:
    with pytest.raises(PartirError, match="a quantity in "):
        quantity(text, unit)


def test_every_device_model_can_be_read() -> None:
    assert set(device_names()) >= {"cpu", "tpu_v5e", "a100_40", "h100"}
    for name in device_names():
        device = find_device(name)
        assert device.memory >= 2**34 and device.memory_bandwidth > device.link_bandwidth > 0
        assert 0 < device.flops["f32"] <= device.peak("bf16")
        assert device.peak("f8E4M3FN") == device.flops["f32"]  # not listed


def test_a_device_that_is_none() -> None:
    with pytest.raises(PartirError) as error:
        find_device("tpu_v5f")
    assert error.value.nearest in {"tpu_v5e", "tpu_v5p"}


def test_a_model_that_lacks_something() -> None:
    with pytest.raises(PartirError, match="lacks: memory"):
        read_device("", "mine")
    with pytest.raises(PartirError, match="not TOML"):
        read_device("memory =", "mine")
