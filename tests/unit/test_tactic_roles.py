"""What each argument is for, and which result is its next value."""

from __future__ import annotations

from typing import Any

from partir.engine.build import build, main_of
from partir.engine.roles import Donations, Roles, donations, find_roles
from partir.partir_dialect.reader import read_module
from partir.passes.prepare import prepare

V = "tensor<8xf32>"


def roles_of(
    arguments: list[str], body: str, results: list[str], types: str = V, **attributes: str
) -> tuple[Roles, Any]:
    """A function whose arguments %0… have these names and whose results these `jax.result_info`."""
    args = ", ".join(
        f'%a{i}: {types} {attributes.get(f"a{i}", "")} loc("{name}")'
        for i, name in enumerate(arguments)
    )
    outs = ", ".join(f'{types} {{jax.result_info = "{info}"}}' for _, info in _pairs(results))
    names = ", ".join(f"%{ssa}" for ssa, _ in _pairs(results))
    text = (
        f"func.func @main({args}) -> ({outs}) {{\n{body}\n"
        f"  return {names} : {', '.join([types] * len(results))}\n}}"
    )
    module = read_module(text)
    prepare(module)
    graph, _ = build(module)
    return find_roles(graph, donations(main_of(module))), graph


def _pairs(results: list[str]) -> list[tuple[str, str]]:
    return [(r.partition(" ")[0], r.partition(" ")[2]) for r in results]


SGD = f"""
  %m = stablehlo.add %a1, %a2 : {V}
  %w = stablehlo.subtract %a0, %m : {V}
  %l = stablehlo.multiply %a0, %a2 : {V}
"""


def test_by_name():
    roles, _ = roles_of(
        ["params['w']", "opt['mu']['w']", "batch['x']"],
        SGD,
        ["w result.params['w']", "m result.opt['mu']['w']", "l result.loss"],
    )
    assert roles.roles == ("param", "optimizer", "input")
    assert roles.pairs == {0: 0, 1: 1}
    assert roles.states == {0: (1,)}


def test_a_tuple_of_results_is_matched_tree_by_tree_and_by_use():
    roles, _ = roles_of(
        ["params['w']", "momentum['w']", "batch['x']"],
        SGD,
        ["m result[0]['w']", "w result[1]['w']", "l result[2]"],
    )
    assert roles.roles == ("param", "optimizer", "input")
    assert roles.pairs == {0: 1, 1: 0}


def test_use_outranks_the_pairs_of_donated_buffers():
    """JAX gives equal shapes away first come, first served: here the wrong way round."""
    roles, graph = roles_of(
        ["w", "m", "x"],
        SGD,
        ["m result[0]", "w result[1]", "l result[2]"],
        a0="{tf.aliasing_output = 0 : i32}",
        a1="{tf.aliasing_output = 1 : i32}",
    )
    assert roles.pairs == {0: 1, 1: 0}
    assert roles.roles == ("param", "optimizer", "input")
    assert roles.states == {0: (1,)}
    assert find_roles(graph, Donations({0: 0, 1: 1})).pairs == {0: 0, 1: 1}


def test_donors_without_an_output_are_paired_by_use():
    roles, _ = roles_of(
        ["w", "m", "x"],
        SGD,
        ["m result[0]", "w result[1]", "l result[2]"],
        a0="{jax.buffer_donor = true}",
        a1="{jax.buffer_donor = true}",
    )
    assert roles.pairs == {0: 1, 1: 0}


def test_without_donation_or_names_nothing_is_paired():
    roles, _ = roles_of(["w", "m", "x"], SGD, ["m result[0]", "w result[1]", "l result[2]"])
    assert roles.pairs == {}
    assert roles.roles == ("input", "input", "input")


def test_names_of_other_frameworks():
    names = [
        "state.params['Dense_0']['kernel']",
        "state.opt_state[0].mu['Dense_0']['kernel']",
        "state.opt_state[0].nu['Dense_0']['kernel']",
        "x",
    ]
    body = f"  %s = stablehlo.add %a0, %a3 : {V}"
    roles, graph = roles_of(names, body, ["s result"])
    assert roles.roles == ("param", "optimizer", "optimizer", "input")
    assert roles.states == {0: (1, 2)}
    assert graph.arguments[1].name == "state/opt_state/0/mu/Dense_0/kernel"


def test_steps_and_keys():
    body = "  %s = stablehlo.add %a0, %a1 : tensor<ui32>"
    roles, _ = roles_of(["opt['count']", "rng"], body, ["s result"], types="tensor<ui32>")
    assert roles.roles == ("step", "rng")
    body = "  %s = stablehlo.add %a0, %a1 : tensor<i32>"
    roles, _ = roles_of(["position", "batch['step']"], body, ["s result"], types="tensor<i32>")
    assert roles.roles == ("input", "input")


def test_types_must_agree_for_a_pair():
    text = """
    func.func @main(%a0: tensor<4xf32> loc("params['w']")) ->
        (tensor<4x1xf32> {jax.result_info = "result.params['w']"}) {
      %r = stablehlo.reshape %a0 : (tensor<4xf32>) -> tensor<4x1xf32>
      return %r : tensor<4x1xf32>
    }"""
    graph, _ = build(read_module(text))
    assert find_roles(graph, Donations({0: 0})).pairs == {}
