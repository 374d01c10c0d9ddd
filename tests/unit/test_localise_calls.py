"""Custom calls of which the target is known, tiled along their batch dimensions."""

from __future__ import annotations

import pytest

from partir.partir_dialect.printer import print_module
from partir.partir_dialect.rules import register_custom_call
from partir.partir_dialect.rules.custom import unregister_custom_call

TOPK = """
func.func @main(%x: tensor<SIZEx6xf32> loc("x")) -> (tensor<SIZEx2xf32>, tensor<SIZEx2xi32>) {
  %r:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = true},
    mhlo.version = 1 : i64} : (tensor<SIZEx6xf32>) -> (tensor<SIZEx2xf32>, tensor<SIZEx2xi32>)
  return %r#0, %r#1 : tensor<SIZEx2xf32>, tensor<SIZEx2xi32>
}"""

QR = """
func.func @main(%x: tensor<8x5x3xf32> loc("x")) -> tensor<8x5x3xf32> {
  %r:2 = stablehlo.custom_call @lapack_sgeqrf_ffi(%x) {mhlo.backend_config = {},
    operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>],
    result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>],
    output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0],
      operand_index = 0, operand_tuple_indices = []>],
    sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i, n])
      {i=8, j=5, k=3, l=5, m=3, n=3}, custom>}
    : (tensor<8x5x3xf32>) -> (tensor<8x5x3xf32>, tensor<8x3xf32>)
  return %r#0 : tensor<8x5x3xf32>
}"""


@pytest.mark.parametrize(("size", "axis"), [(8, 2), (8, 4), (7, 2), (9, 3)])
def test_top_k_of_a_batch(case, size, axis):
    text = TOPK.replace("SIZE", str(size))
    c = case(text, a=axis)
    assert c.step(("x", 0, "a")) == ["done"]
    assert c.counts() == {}
    c.verify()
    c = case(text, a=axis)
    c.step(("x", 1, "a"))
    assert c.counts() == {"all_gather": 1}
    c.verify()


@pytest.mark.parametrize("axis", [2, 4])
def test_a_factorisation_of_a_batch_drops_its_global_sharding_rule(case, axis):
    c = case(QR, a=axis)
    c.step(("x", 0, "a"))
    assert c.counts() == {}
    c.verify()
    assert "sharding_rule" not in print_module(c.source.module)
    c = case(QR, a=2)
    c.step(("x", 1, "a"))
    assert c.counts() == {"all_gather": 1}


UNKNOWN = """
func.func @main(%x: tensor<8x6xf32> loc("x")) -> tensor<8x6xf32> {
  %r = stablehlo.custom_call @nobody.knows(%x) EXTRA : (tensor<8x6xf32>) -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}"""


def test_an_unknown_call_is_gathered_until_it_is_registered(case):
    c = case(UNKNOWN.replace("EXTRA", ""), a=2)
    c.step(("x", 0, "a"))
    assert c.counts() == {"all_gather": 1}
    register_custom_call("nobody.knows", "i j -> i j")
    try:
        c = case(UNKNOWN.replace("EXTRA", ""), a=2)
        c.step(("x", 0, "a"))
        assert c.counts() == {}
        sized = "{indices_of_shape_operands = dense<[0]> : tensor<1xi64>}"
        c = case(UNKNOWN.replace("EXTRA", sized), a=2)
        c.step(("x", 0, "a"))
        assert c.counts() == {"all_gather": 1}
    finally:
        unregister_custom_call("nobody.knows")
