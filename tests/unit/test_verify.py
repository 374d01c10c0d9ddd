"""Is a wrong program found out, and is it said where it goes wrong?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import partir
from partir.partir_dialect.errors import MismatchError, PartirError
from partir.runtime.partition import Partitioned
from partir.runtime.verify import first_difference, verify_spmd

MESH = partir.Mesh(batch=4, model=2)
CHAIN = """
module {
  func.func public @main(%x: tensor<16x8xf32> loc("x"), %w1: tensor<8x16xf32> loc("w1"),
      %w2: tensor<16x8xf32> loc("w2")) -> tensor<16x8xf32> {
    %0 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0]
      : (tensor<16x8xf32>, tensor<8x16xf32>) -> tensor<16x16xf32> loc("first.py":1:2)
    %1 = stablehlo.tanh %0 : tensor<16x16xf32> loc("second.py":3:4)
    %2 = stablehlo.dot_general %1, %w2, contracting_dims = [1] x [0]
      : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32> loc("third.py":5:6)
    return %2 : tensor<16x8xf32>
  }
}
"""
TACTICS = ["tile x dim=0 axis=batch", "tile w1 dim=1 axis=model"]


@pytest.fixture
def program() -> partir.Program:
    return partir.read_text(CHAIN)


@pytest.fixture
def result(program: partir.Program) -> Partitioned:
    return partir.partition(program, MESH, TACTICS)


def broken(result: Partitioned, change: Callable[[str], str]) -> partir.Program:
    text = change(result.spmd_text)
    assert text != result.spmd_text
    return partir.read_text(text)


def test_a_right_program_is_equal(program: partir.Program, result: Partitioned) -> None:
    result.verify()
    verify_spmd(program, partir.read_text(result.spmd_text), MESH)


@pytest.mark.parametrize("backend", ["numpy", "xla"])
def test_groups_that_are_wrong(program: partir.Program, result: Partitioned, backend: str) -> None:
    wrong = broken(result, lambda text: text.replace("[[0, 1], [2, 3]", "[[0, 2], [1, 3]"))
    with pytest.raises(MismatchError, match=r"result 'result/0' differs on device \d+: its tile"):
        verify_spmd(program, wrong, MESH, backend=backend)


def test_an_op_that_is_wrong(program: partir.Program, result: Partitioned) -> None:
    wrong = broken(result, lambda text: text.replace("stablehlo.tanh", "stablehlo.sine"))
    with pytest.raises(MismatchError, match="differs"):
        verify_spmd(program, wrong, MESH)


def test_a_wrong_tile_on_one_device_only(program: partir.Program, result: Partitioned) -> None:
    wrong = broken(
        result,
        lambda text: (
            text.replace('"func.return"(', "__", 1)
            .replace(
                "__",
                '%p = "stablehlo.partition_id"() : () -> tensor<ui32>\n'
                '    %seven = "stablehlo.constant"() <{value = dense<7> : tensor<ui32>}>'
                " : () -> tensor<ui32>\n"
                '    %is = "stablehlo.compare"(%p, %seven) <{comparison_direction = '
                "#stablehlo<comparison_direction EQ>}>"
                " : (tensor<ui32>, tensor<ui32>) -> tensor<i1>\n"
                '    %f = "stablehlo.convert"(%is) : (tensor<i1>) -> tensor<f32>\n'
                '    %b = "stablehlo.broadcast_in_dim"(%f) <{broadcast_dimensions = array<i64>}>'
                " : (tensor<f32>) -> tensor<4x8xf32>\n"
                f'    %bad = "stablehlo.add"({_returned(text)}, %b) : (tensor<4x8xf32>, '
                'tensor<4x8xf32>) -> tensor<4x8xf32>\n    "func.return"(',
            )
            .replace(f'"func.return"({_returned(text)})', '"func.return"(%bad)')
        ),
    )
    with pytest.raises(MismatchError, match="differs on device 7"):
        verify_spmd(program, wrong, MESH)


def _returned(text: str) -> str:
    return text.split('"func.return"(', 1)[1].split(")", 1)[0]


def test_rtol_overrides(program: partir.Program, result: Partitioned) -> None:
    wrong = broken(result, lambda text: text.replace("stablehlo.tanh", "stablehlo.sine"))
    verify_spmd(program, wrong, MESH, rtol=10.0)
    with pytest.raises(MismatchError):
        result.verify(rtol=0.0)


def test_the_first_op_that_differs_is_named(result: Partitioned) -> None:
    # the lowering is told that w1 is whole along model: the first product is the first to differ
    prepared = result.fresh()
    inputs = [
        np.random.default_rng(k).standard_normal(a.shape)
        for k, a in enumerate(result.program.arguments)
    ]
    arrays = [x.astype(np.float32) for x in inputs]
    assert first_difference(result, prepared, arrays) is None
    original = result.lower

    def sabotaged(source: Any) -> Any:
        lowered = original(source)
        for op in list(source.function.body.block.ops):
            if op.name == "stablehlo.tanh":
                from partir.partir_dialect.stablehlo import SineOp

                new = SineOp.create(operands=list(op.operands), result_types=[op.results[0].type])
                new.location = op.location
                source.function.body.block.insert_op_before(new, op)
                op.results[0].replace_all_uses_with(new.results[0])
                values = tuple(new.results[0] if v is op.results[0] else v for v in lowered.values)
                op.detach()
                op.erase()
                return type(lowered)(values)
        raise AssertionError("no tanh")

    result.lower = sabotaged
    message = first_difference(result, result.fresh(), arrays)
    assert message is not None
    assert message.startswith(
        "the first op that differs is stablehlo.tanh at second.py:3:4, on device 0"
    )


def test_numbers_that_are_none_fail() -> None:
    program = partir.read_text(CHAIN.replace("stablehlo.tanh", "stablehlo.log"))
    with pytest.raises(MismatchError, match="the global program gives nan in result 'result/0'"):
        partir.partition(program, MESH, TACTICS).verify()


def test_a_program_of_another_signature(result: Partitioned) -> None:
    square = CHAIN.replace("16x8", "8x8").replace("8x16", "8x8").replace("16x16", "8x8")
    other = partir.read_text(square)
    with pytest.raises(PartirError, match="not one of '<string>'"):
        verify_spmd(other, partir.read_text(result.spmd_text), MESH)


def test_the_same_seed_draws_the_same(result: Partitioned) -> None:
    result.verify(seed=1)
    result.verify(seed=2)
