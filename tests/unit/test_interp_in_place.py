"""Loops that fill an array: written in place where nobody can see it, and only there."""

# ruff: noqa: E501 (a line of MLIR is easier to read whole)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partir.interp import run, run_spmd
from partir.interp.compiler import Program
from partir.partir_dialect.mesh import Mesh
from partir.partir_dialect.reader import read_module

Array = np.ndarray[Any, np.dtype[Any]]

LOOP = """module {
func.func @main(%x: tensor<6xf32>, %n: tensor<i32>, %v: tensor<1xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<6xf32>
    cond {
      %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %f = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
      %g = stablehlo.reshape %f : (tensor<f32>) -> tensor<1xf32>
      %u = stablehlo.add %g, %v : tensor<1xf32>
BODY
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %b : tensor<i32>, tensor<6xf32>
    }
  return %r#1, %x : tensor<6xf32>, tensor<6xf32>
}
FUNCTIONS
}"""
PLAIN = "      %b = stablehlo.dynamic_update_slice %a, %u, %i : (tensor<6xf32>, tensor<1xf32>, tensor<i32>) -> tensor<6xf32>"
CALL = "      %b = func.call @store(%u, %a, %i) : (tensor<1xf32>, tensor<6xf32>, tensor<i32>) -> tensor<6xf32>"
STORE = """func.func private @store(%u: tensor<1xf32>, %a: tensor<6xf32>, %i: tensor<i32>) -> tensor<6xf32> {
  %b = stablehlo.dynamic_update_slice %a, %u, %i : (tensor<6xf32>, tensor<1xf32>, tensor<i32>) -> tensor<6xf32>
  return %b : tensor<6xf32>
}"""
# The old array is seen after it was written: this one must be copied.
SEEN = PLAIN.replace("%b =", "%c =") + "\n      %b = stablehlo.add %c, %a : tensor<6xf32>"


def text(body: str, functions: str = "") -> str:
    return LOOP.replace("BODY", body).replace("FUNCTIONS", functions)


def filled(x: Array, count: int, value: float) -> Array:
    want = x.copy()
    want[:count] = np.arange(count) + value
    return want


@pytest.mark.parametrize(("body", "functions"), [(PLAIN, ""), (CALL, STORE)])
@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_the_result_is_filled_and_the_operand_stays(body: str, functions: str, count: int) -> None:
    x = np.random.default_rng(0).standard_normal(6).astype(np.float32)
    before = x.copy()
    module = read_module(text(body, functions))
    inputs = [x, np.array(count, np.int32), np.array([10], np.float32)]
    for _ in range(2):  # a second run starts afresh
        result, operand = run(module, inputs)
        np.testing.assert_array_equal(result, filled(before, count, 10))
        np.testing.assert_array_equal(operand, before)
        np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize(
    ("body", "functions", "updates"),
    [
        (PLAIN, "", 1),
        (CALL, STORE, 1),
        (SEEN, "", 0),
        (CALL + "\n" + CALL.replace("%b", "%c"), STORE, 0),
    ],
)
def test_only_an_update_that_nobody_sees_is_in_place(
    body: str, functions: str, updates: int
) -> None:
    program = Program(read_module(text(body, functions)))
    program.function("main")
    assert len(program.in_place) == updates


def test_an_array_that_is_seen_again_is_copied() -> None:
    x = np.ones(6, np.float32)
    inputs = [x, np.array(2, np.int32), np.array([10], np.float32)]
    result, _ = run(read_module(text(SEEN)), inputs)
    want = x.copy()
    for i in range(2):
        updated = want.copy()
        updated[i] = i + 10
        want = updated + want
    np.testing.assert_array_equal(result, want)


@pytest.mark.parametrize(("body", "functions"), [(PLAIN, ""), (CALL, STORE)])
def test_devices_share_no_array_that_they_write(body: str, functions: str) -> None:
    """All start from one array, leave the loop at different times, and store different values."""
    x = np.zeros(6, np.float32)
    counts, values = [4, 2, 4, 0], [1.0, 1.0, 5.0, 9.0]
    inputs = [
        [x, np.array(c, np.int32), np.array([v], np.float32)]
        for c, v in zip(counts, values, strict=True)
    ]
    outputs = run_spmd(read_module(text(body, functions)), Mesh(a=4), inputs)
    for (result, operand), count, value in zip(outputs, counts, values, strict=True):
        np.testing.assert_array_equal(result, filled(x, count, value))
        np.testing.assert_array_equal(operand, x)


def test_equal_results_of_a_loop_are_one_object_again() -> None:
    inputs = [
        [np.zeros(6, np.float32), np.array(3, np.int32), np.array([v], np.float32)]
        for v in (1, 2, 1)
    ]
    outputs = run_spmd(read_module(text(PLAIN)), Mesh(a=3), inputs)
    assert outputs[0][0] is outputs[2][0] and outputs[0][0] is not outputs[1][0]


def test_an_observer_may_keep_every_version() -> None:
    kept: list[Array] = []
    inputs = [np.zeros(6, np.float32), np.array(3, np.int32), np.array([10], np.float32)]

    def observe(value: Any, array: Array) -> None:
        if value.owner.name == "stablehlo.dynamic_update_slice":
            kept.append(array)

    run(read_module(text(PLAIN)), inputs, observe=observe)
    assert [int((a > 0).sum()) for a in kept] == [1, 2, 3]
