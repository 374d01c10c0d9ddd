"""The list by which the engine plans and the tables by which the lowering works are the same."""

from __future__ import annotations

from partir.cost.memory import peak_memory
from partir.engine import exchange, local
from partir.passes.localise import ATTRIBUTES, REPLACING, REWRITES


def test_the_engine_plans_what_the_lowering_can_do():
    assert set(REWRITES) == local.REWRITES | {local.MASK}
    assert set(ATTRIBUTES) == local.ATTRIBUTES
    assert set(REWRITES) >= REPLACING
    assert {f"stablehlo.{name}" for name in local.EXCHANGED} == set(exchange._SLIDES)
    assert not local.RETYPED & local.ATTRIBUTES
    assert local.REWRITES >= local.UNEVEN | local.ALONE
    assert not local.UNEVEN & local.EXCHANGED


HALO = """
func.func @main(%x: tensor<24x3xf32> loc("x"), %y: tensor<8x3xf32> loc("y"))
    -> (tensor<24x3xf32>, tensor<8x8x3xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.pad %x, %z, low = [1, 0], high = [-1, 0], interior = [0, 0]
    : (tensor<24x3xf32>, tensor<f32>) -> tensor<24x3xf32>
  %b = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (tensor<8x3xf32>) -> tensor<8x8x3xf32>
  return %r, %b : tensor<24x3xf32>, tensor<8x8x3xf32>
}"""


def test_a_halo_costs_its_bytes_and_lives_until_it_is_used(case):
    c = case(HALO, a=4)
    c.step(("x", 0, "a"))
    plan = c.session.plan()
    (halo,) = plan.reshards
    assert plan.counts()["collective_permute"] == {"count": 1, "bytes": 12, "ring_bytes": 12}
    (op,) = [s for s in plan.steps if getattr(s, "halos", ())]
    assert op.reads == (*op.inputs, halo.target)
    assert halo.fallback is False
    assert plan.fallbacks == []
    assert c.graph.kinds[op.op] == "stablehlo.pad"
    assert peak_memory(plan).bytes >= sum(plan.values[v].bytes for v in op.reads)
