"""The plan: where sums stay pending and where not, in which order axes lie, what is shared."""

from __future__ import annotations

from partir.engine.plan import Reshard

MM = "(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>"
T = "tensor<8x8xf32>"


def program(names: str, body: str, result: str = "r", type_: str = T) -> str:
    args = ", ".join(f'%{name}: {T} loc("{name}")' for name in names.split())
    return f"func.func @main({args}) -> {type_} {{\n{body}\n  return %{result} : {type_}\n}}"


def dot(name: str, left: str, right: str) -> str:
    return (
        f"  %{name} = stablehlo.dot_general %{left}, %{right}, contracting_dims = [1] x [0]"
        f" : {MM}\n"
    )


def binary(name: str, op: str, left: str, right: str) -> str:
    return f"  %{name} = stablehlo.{op} %{left}, %{right} : {T}\n"


TWO = dot("p", "a", "b") + dot("q", "c", "d")
BOTH = [("a", 1, "model"), ("c", 1, "model")]


def test_two_pending_sums_that_meet_are_reduced_once(case):
    c = case(program("a b c d", TWO + binary("r", "add", "p", "q")), batch=4, model=2)
    c.step(*BOTH)
    assert c.counts() == {"all_reduce": 1}
    c.verify()


def test_through_linear_ops_with_one_use(case):
    body = TWO + "".join(
        (
            f"  %t = stablehlo.transpose %p, dims = [1, 0] : ({T}) -> {T}\n",
            f"  %n = stablehlo.negate %q : {T}\n",
            binary("m", "multiply", "n", "s"),
            binary("r", "subtract", "t", "m"),
        )
    )
    c = case(program("a b c d s", body), batch=4, model=2)
    c.step(*BOTH)
    assert c.counts() == {"all_reduce": 1}
    c.verify()


def test_never_deferred_speculatively(case):
    """A pending sum that meets nothing pending is reduced where it is made, as in layer norm."""
    body = dot("p", "a", "b") + binary("u", "multiply", "p", "s") + binary("v", "add", "u", "c")
    body += binary("w", "multiply", "u", "v") + binary("r", "subtract", "w", "v")
    c = case(program("a b c s", body), batch=4, model=2)
    c.step(("a", 1, "model"))
    assert c.counts() == {"all_reduce": 1}
    (reduce,) = [r for r in c.session.plan().reshards if r.kind == "all_reduce"]
    assert c.session.plan().values[reduce.source].value == c.value("p")
    c.verify()


def test_a_second_use_ends_the_chain(case):
    body = TWO + binary("s", "add", "p", "q") + binary("r", "multiply", "s", "p")
    c = case(program("a b c d", body), batch=4, model=2)
    c.step(*BOTH)
    assert c.counts() == {"all_reduce": 2}
    c.verify()


def test_different_axis_sets_never_mix(case):
    c = case(program("a b c d", TWO + binary("r", "add", "p", "q")), batch=4, model=2)
    c.step(("a", 1, "model"), ("c", 1, "batch"))
    assert c.counts() == {"all_reduce": 2}
    c.verify()


def test_merged_even_when_the_addition_is_tiled(case):
    body = TWO + binary("s", "add", "p", "q") + binary("r", "add", "s", "m")
    c = case(program("a b c d m", body), batch=4)
    c.step(("a", 1, "batch"), ("c", 1, "batch"))
    c.step(("m", 0, "batch"))
    assert c.counts() == {"reduce_scatter": 1}
    c.verify()


def test_reassociated_so_that_pending_sums_meet(case):
    body = TWO + binary("s", "add", "e", "p") + binary("r", "add", "s", "q")
    c = case(program("a b c d e", body), batch=4, model=2)
    c.step(*BOTH)
    assert c.counts() == {"all_reduce": 1}
    c.verify()


def test_reassociation_in_a_longer_tree(case):
    body = (
        dot("p", "a", "b") + binary("s", "add", "p", "e") + dot("q", "c", "d")
        + binary("t", "add", "q", "f") + binary("u", "add", "s", "t") + binary("r", "add", "u", "e")
    )  # fmt: skip
    c = case(program("a b c d e f", body), batch=4, model=2)
    c.step(*BOTH)
    assert c.counts() == {"all_reduce": 1}
    c.verify()


def pad(value: str) -> str:
    return (
        f"  %k = stablehlo.constant dense<{value}> : tensor<f32>\n"
        f"  %p1 = stablehlo.pad %p, %k, low = [0, 0], high = [0, 2], interior = [0, 0]"
        f" : ({T}, tensor<f32>) -> tensor<8x10xf32>\n"
        f"  %q1 = stablehlo.pad %q, %k, low = [0, 0], high = [0, 2], interior = [0, 0]"
        f" : ({T}, tensor<f32>) -> tensor<8x10xf32>\n"
        "  %r = stablehlo.add %p1, %q1 : tensor<8x10xf32>\n"
    )


def test_padding_with_zero_passes(case):
    c = case(program("a b c d", TWO + pad("0.0"), type_="tensor<8x10xf32>"), model=4)
    c.step(*BOTH)
    assert c.counts() == {"all_reduce": 1}
    c.verify()


def test_padding_with_one_does_not(case):
    """Crossing it would count the padding on every device: 4 instead of 1 on 4 devices."""
    c = case(program("a b c d", TWO + pad("1.0"), type_="tensor<8x10xf32>"), model=4)
    c.step(*BOTH)
    assert c.counts() == {"all_reduce": 2}
    c.verify()


def converted(middle: str) -> str:
    other = f"tensor<8x8x{middle}>"
    return TWO + (
        f"  %p1 = stablehlo.convert %p : ({T}) -> {other}\n"
        f"  %q1 = stablehlo.convert %q : ({T}) -> {other}\n"
        f"  %r = stablehlo.add %p1, %q1 : {other}\n"
    )


def test_widening_passes_narrowing_and_integers_do_not(case):
    for middle, count in (("f64", 1), ("bf16", 2), ("i32", 2)):
        text = program("a b c d", converted(middle), type_=f"tensor<8x8x{middle}>")
        c = case(text, model=4)
        c.step(*BOTH)
        assert c.counts() == {"all_reduce": count}, middle
        c.verify(rtol=0.05 if middle == "bf16" else 1e-4)


def test_concatenation_carries_what_is_pending_on_both_sides(case):
    body = TWO + (
        f"  %x = stablehlo.concatenate %p, %q, dim = 0 : ({T}, {T}) -> tensor<16x8xf32>\n"
        + dot("s", "a", "d").replace("tensor<8x8xf32>", "tensor<8x8xf32>")
        + dot("t", "c", "b")
        + f"  %y = stablehlo.concatenate %s, %t, dim = 0 : ({T}, {T}) -> tensor<16x8xf32>\n"
        "  %r = stablehlo.add %x, %y : tensor<16x8xf32>\n"
    )
    c = case(program("a b c d", body, type_="tensor<16x8xf32>"), model=4)
    c.step(*BOTH)
    assert c.counts() == {"all_reduce": 1}
    c.verify()


def test_a_product_with_what_is_tiled_does_not_pass(case):
    body = TWO + binary("u", "multiply", "p", "m") + binary("r", "add", "u", "q")
    c = case(program("a b c d m", body), model=4)
    c.step(*BOTH, ("m", 0, "model"))
    plan = c.verify()
    reduced = [plan.values[r.source].value for r in plan.reshards if r.move.reducer]
    assert c.value("p") in reduced  # before the product


def test_axes_that_are_gathered_go_minor_in_either_order(case):
    """Megatron and ZeRO-3 on one dimension: no permutes, whichever came first."""
    text = program("x w", dot("h", "x", "w") + f"  %r = stablehlo.tanh %h : {T}\n")
    for steps in ((("w", 1, "model"), ("w", 1, "batch")), (("w", 1, "batch"), ("w", 1, "model"))):
        c = case(text, batch=2, model=2)
        c.step(("x", 0, "batch"))
        for tile in steps:
            c.step(tile)
        plan = c.session.plan()
        assert plan.placement(plan.arguments[1]).dims == ((), ("model", "batch"))
        assert c.counts() == {"all_gather": 1}
        c.verify()


TWICE = dot("h", "x", "w") + dot("g", "y", "w") + binary("r", "add", "h", "g")


def test_a_parameter_is_gathered_for_each_use_or_once_by_policy(case):
    for once, count in ((False, 2), (True, 1)):
        c = case(program("x y w", TWICE), batch=4)
        c.step(("x", 0, "batch"))
        c.step(("w", 1, "batch"))
        if once:
            c.session.gather_once(c.value("w"))
        assert c.counts() == {"all_gather": count}
        c.verify()


def test_a_cast_comes_before_the_gather(case):
    text = """
func.func @main(%x: tensor<8x8xbf16> loc("x"), %w: tensor<8x8xf32> loc("w")) -> tensor<8x8xbf16> {
  %v = stablehlo.convert %w : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  %r = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0]
    : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %r : tensor<8x8xbf16>
}"""
    c = case(text, batch=4)
    c.step(("x", 0, "batch"))
    c.step(("w", 0, "batch"))
    (gather,) = [r for r in c.session.plan().reshards if r.kind == "all_gather"]
    assert gather.bytes == 8 * 8 * 2
    c.verify(rtol=0.05)


def test_a_reshard_of_an_activation_is_shared_between_equal_uses(case):
    body = f"  %h = stablehlo.tanh %x : {T}\n" + dot("s", "h", "w") + dot("t", "h", "v")
    body += binary("r", "add", "s", "t")
    c = case(program("x w v", body), batch=4)
    c.session.begin("stop")
    c.session.stop(c.value("h"), "batch")
    c.step(("x", 0, "batch"), ("w", 1, "batch"), ("v", 1, "batch"))
    assert c.counts() == {"all_gather": 1}
    c.verify()


def test_max_is_reduced_by_max_and_not_deferred_into_a_sum(case):
    text = """
func.func @main(%x: tensor<8x8xf32> loc("x"), %y: tensor<8x8xf32> loc("y")) -> tensor<8xf32> {
  %z = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %a = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [1]
    : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %b = stablehlo.reduce(%y init: %z) applies stablehlo.maximum across dimensions = [1]
    : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %r = stablehlo.OP %a, %b : tensor<8xf32>
  return %r : tensor<8xf32>
}"""
    for op, count in (("add", 2), ("maximum", 1)):
        c = case(text.replace("OP", op), model=4)
        c.step(("x", 1, "model"), ("y", 1, "model"))
        plan = c.verify()
        moves = [r.move for r in plan.reshards if r.kind == "all_reduce"]
        assert [move.reducer for move in moves] == ["max"] * count, op


def test_an_init_that_is_not_the_identity_counts_once(case):
    text = """
func.func @main(%x: tensor<8x8xf32> loc("x")) -> tensor<8xf32> {
  %z = stablehlo.constant dense<5.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
    : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}"""
    c = case(text, a=2, b=2)
    c.step(("x", 1, "a"))
    c.step(("x", 1, "b"))
    assert c.counts() == {"all_reduce": 1}
    c.verify()


def test_every_reshard_says_where_it_comes_from(case):
    c = case(program("a b c d", TWO + binary("r", "add", "p", "q")), batch=4, model=2)
    c.step(("a", 0, "batch"))
    c.step(*BOTH)
    for step in c.session.plan().steps:
        if isinstance(step, Reshard):
            assert step.uses
            assert step.tactic in (0, 1)
