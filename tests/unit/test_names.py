"""Names of arguments, results and places, as JAX writes them."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from partir.partir_dialect.names import argument_names, flat_path, location_text, result_names
from partir.partir_dialect.reader import read_module


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("params['layer_0']['wq']", "params/layer_0/wq"),
        ('params["layer_0"]["wq"]', "params/layer_0/wq"),
        ("opt.mu['embed']", "opt/mu/embed"),
        ("state[0].step", "state/0/step"),
        ("x", "x"),
        ("params/layer_0/wq", "params/layer_0/wq"),
        ("cache[0]['k']", "cache/0/k"),
        ("params['a.b']['c']", "params/a.b/c"),
        ("params['a/b']", "params/a/b"),
        ("", ""),
    ],
)
def test_flat_path(text: str, path: str) -> None:
    assert flat_path(text) == path


def main_of(text: str) -> FuncOp:
    return next(op for op in read_module(text).walk() if isinstance(op, FuncOp))


def test_argument_names_come_from_locations() -> None:
    main = main_of("""
#loc1 = loc("m.py":1:2)
func.func @main(%arg0: tensor<f32> loc("params['w']"), %arg1: tensor<f32> loc("x"(#loc1)),
    %arg2: tensor<f32> loc(#loc1), %arg3: tensor<f32>, %arg4: tensor<f32> loc("x")) { return }""")
    assert argument_names(main) == ["params/w", "x", "arg2", "arg3", "x_1"]


def test_argument_names_of_a_declaration() -> None:
    main = main_of("func.func private @f(tensor<f32>, tensor<f32>)")
    assert argument_names(main) == ["arg0", "arg1"]


def test_result_names_come_from_jax() -> None:
    main = main_of("""
func.func @main(%a: tensor<f32>) -> (tensor<f32> {jax.result_info = "result.params['w']"},
    tensor<f32> {jax.result_info = "[0]['b']"}, tensor<f32> {jax.result_info = ""}, tensor<f32>,
    tensor<f32> {jax.result_info = "result"}) {
  return %a, %a, %a, %a, %a
    : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}""")
    assert result_names(main) == [
        "result/params/w",
        "result/0/b",
        "result/2",
        "result/3",
        "result/4",
    ]


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ('"m.py":12:3', "m.py:12:3"),
        ('"scope/mul"("m.py":12:3)', "m.py:12:3 (scope/mul)"),
        ('"scope/mul"', "scope/mul"),
        ('"a"(callsite("f"("m.py":1:2) at "g"("n.py":3:4)))', "m.py:1:2 (a)"),
        ('fused[unknown, "m.py":1:2]', "m.py:1:2"),
        ('"m.py":1:2 to 3:4', "m.py:1:2"),
        ("unknown", ""),
    ],
)
def test_location_text(location: str, text: str) -> None:
    module = read_module(f'"a.b"() : () -> () loc({location})')
    op = module.body.block.first_op
    assert op is not None
    assert location_text(op.location) == text
