"""Loops and branches: one nest for each carry, collectives inside counted by trips."""

from __future__ import annotations

import pytest

T = "tensor<8x8xf32>"
DOT = "contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>"


def loop(body: str, *, more: str = "", names: str = "x w", trips: int = 3) -> str:
    args = ", ".join(f'%{name}: {T} loc("{name}")' for name in names.split())
    return f"""
func.func @main({args}) -> {T} {{
  %c = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<{trips}> : tensor<i32>
{more}
  %0:2 = stablehlo.while(%i = %c, %h = %x) : tensor<i32>, {T}
  cond {{
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
{body}
    stablehlo.return %j, %y : tensor<i32>, {T}
  }}
  return %0#1 : {T}
}}"""


MATMUL = f"    %y = stablehlo.dot_general %h, %w, {DOT}"


def test_a_batch_goes_through_a_loop_without_collectives(case):
    c = case(loop(MATMUL), batch=4)
    c.step(("x", 0, "batch"))
    assert c.dims("h") == c.dims("y") == (("batch",), ())
    assert c.counts() == {}
    plan = c.verify()
    assert plan.placement(plan.results[0]).dims == (("batch",), ())


def test_a_collective_in_the_body_counts_once_a_trip(case):
    c = case(loop(MATMUL, trips=5), batch=4, model=2)
    c.step(("x", 0, "batch"))
    c.step(("w", 1, "model"))
    counts = c.session.plan().counts()
    assert sum(row["count"] for row in counts.values()) == 5
    c.verify()


def test_a_parameter_is_gathered_in_the_loop_at_each_use(case):
    c = case(loop(MATMUL), batch=4)
    c.step(("x", 0, "batch"))
    c.step(("w", 0, "batch"))
    counts = c.session.plan().counts()["all_gather"]
    assert (counts["count"], counts["bytes"]) == (3, 3 * 8 * 8 * 4)
    c.verify()


def test_evidence_in_the_body_decides_the_carry(case):
    body = "    %y = stablehlo.add %h, %w : tensor<8x8xf32>"
    c = case(loop(body), model=4)
    c.step(("w", 1, "model"))
    assert c.dims("x") == c.dims("h") == ((), ("model",))
    assert c.counts() == {}
    c.verify()


def test_a_sum_in_the_body_is_reduced_before_it_is_carried(case):
    body = f"""    %g = stablehlo.dot_general %h, %w, {DOT}
    %y = stablehlo.add %g, %v : {T}"""
    c = case(loop(body, names="x w v"), model=2)
    c.session.begin("whole")
    c.session.replicate(c.value("x"), "model")
    c.step(("w", 0, "model"))
    c.verify()


def test_a_reduction_in_the_condition_is_whole(case):
    text = f"""
func.func @main(%x: {T} loc("x")) -> {T} {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %limit = stablehlo.constant dense<50.0> : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %0 = stablehlo.while(%h = %x) : {T}
  cond {{
    %q = stablehlo.multiply %h, %h : {T}
    %s = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0, 1]
      : ({T}, tensor<f32>) -> tensor<f32>
    %p = stablehlo.compare LT, %s, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %b = stablehlo.broadcast_in_dim %two, dims = [] : (tensor<f32>) -> {T}
    %y = stablehlo.multiply %h, %b : {T}
    stablehlo.return %y : {T}
  }}
  return %0 : {T}
}}"""
    c = case(text, batch=4)
    c.step(("x", 0, "batch"))
    assert c.dims("h") == (("batch",), ())
    assert c.counts() == {"all_reduce": 1}  # of unknown trip count: counted once
    c.verify()


def test_loops_in_loops_reach_one_fixed_point(case):
    inner = f"""    %1:2 = stablehlo.while(%k = %c, %g = %h) : tensor<i32>, {T}
    cond {{
      %p2 = stablehlo.compare LT, %k, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p2 : tensor<i1>
    }} do {{
      %l = stablehlo.add %k, %one : tensor<i32>
      %y2 = stablehlo.dot_general %g, %w, {DOT}
      stablehlo.return %l, %y2 : tensor<i32>, {T}
    }}
    %y = stablehlo.tanh %1#1 : {T}"""
    c = case(loop(inner), batch=2, model=2)
    c.step(("x", 0, "batch"))
    c.step(("w", 1, "model"))
    assert c.dims("g") == c.dims("h")
    counts = c.session.plan().counts()
    assert sum(row["count"] for row in counts.values()) % 9 == 0
    c.verify()


BRANCH = f"""
func.func @main(%i: tensor<i32> loc("i"), %x: {T} loc("x"), %w: {T} loc("w")) -> {T} {{
  %r = "stablehlo.case"(%i) ({{
    %a = stablehlo.dot_general %x, %w, {DOT}
    stablehlo.return %a : {T}
  }}, {{
    %b = stablehlo.tanh %x : {T}
    stablehlo.return %b : {T}
  }}) : (tensor<i32>) -> {T}
  %y = stablehlo.negate %r : {T}
  return %y : {T}
}}"""


@pytest.mark.parametrize("tiles", [[("x", 0, "a")], [("w", 1, "a")], [("x", 1, "a")]])
def test_branches_agree_on_their_results(case, tiles):
    c = case(BRANCH, a=4)
    c.step(*tiles)
    c.verify(seed=1)


def test_a_carry_that_passes_through_stays_a_parameter(case):
    text = loop(MATMUL).replace("%0:2 =", "%0:3 =")
    text = text.replace("%h = %x) : tensor<i32>", f"%h = %x, %u = %w) : tensor<i32>, {T}")
    text = text.replace("%h, %w,", "%h, %u,").replace(
        f"%j, %y : tensor<i32>, {T}", f"%j, %y, %u : tensor<i32>, {T}, {T}"
    )
    c = case(text, batch=4)
    c.step(("x", 0, "batch"))
    c.step(("w", 0, "batch"))
    assert c.dims("u") == (("batch",), ())
    assert c.session.plan().counts()["all_gather"]["count"] == 3
    c.verify()
