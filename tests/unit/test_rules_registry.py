"""The registry: complete, checked, extensible, memoised without changing an answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation

from partir.partir_dialect.chlo import Chlo
from partir.partir_dialect.errors import RuleError
from partir.partir_dialect.reader import read_module
from partir.partir_dialect.rules import (
    Factor,
    Kind,
    Linearity,
    Rule,
    check_rule,
    has_rule,
    is_identity,
    register_custom_call,
    rule_of,
    rule_text,
    unregister_custom_call,
)
from partir.partir_dialect.rules.control import REASONS
from partir.partir_dialect.sdy import Sdy
from partir.partir_dialect.stablehlo import Stablehlo

TABLE = Path(__file__).with_name("test_rules.mlir")


def last_op(body: str) -> Operation:
    """The op that makes the first result of a function."""
    function = read_module(body).body.block.first_op
    assert isinstance(function, FuncOp)
    last = function.body.block.last_op
    assert isinstance(last, ReturnOp)
    owner = last.operands[0].owner
    assert isinstance(owner, Operation)
    return owner


# --- completeness -------------------------------------------------------------------------------


def op_names() -> list[str]:
    dialects = (Stablehlo, Chlo, Sdy)
    return [op.name for dialect in dialects for op in dialect.operations]


@pytest.mark.parametrize("name", op_names())
def test_every_op_has_a_row(name: str) -> None:
    assert has_rule(name), f"{name} is blocked by oversight: give it a rule or a reason"


def test_every_op_with_factors_has_an_instance() -> None:
    instances = {op.name for op in read_module(TABLE.read_text()).walk()}
    without = {n for n in op_names() if n.split(".")[0] != "sdy"} - instances - REASONS.keys()
    chlo = {f"chlo.{name}" for name in ("_asin_acos_kernel", "constant", "constant_like", "mulhi")}
    quantised = {"stablehlo.uniform_dequantize", "stablehlo.uniform_quantize"}  # tested below
    assert without <= chlo | quantised


def test_an_unknown_op_is_blocked() -> None:
    op = last_op("""func.func @main(%x: tensor<4x1xf32>) -> tensor<4x6xf32> {
      %r = stablehlo.custom_call @nobody(%x) : (tensor<4x1xf32>) -> tensor<4x6xf32>
      return %r : tensor<4x6xf32> }""")
    assert rule_text(rule_of(op)) == "_ 1 -> _ _"
    assert all(factor.kind is Kind.BLOCKED for factor in rule_of(op).factors)


@pytest.mark.parametrize(
    ("config", "shown"),
    [
        ("ij,jk->ik", "i j, j k -> i k where j = add"),
        ("ij,kj->ik", "i _, _ _ -> i _"),
        ("ii,jk->ik", "_ _, i j -> _ j where i = add"),
        ("...j,jk->...k", "_ _, _ _ -> _ _"),
    ],
)
def test_einsum_letters_that_cannot_be_tiled_are_blocked(config: str, shown: str) -> None:
    op = last_op(f"""func.func @main(%x: tensor<4x6xf32>, %y: tensor<6x8xf32>) -> tensor<4x8xf32> {{
      %r = "stablehlo.einsum"(%x, %y) <{{einsum_config = "{config}"}}>
        : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
      return %r : tensor<4x8xf32> }}""")
    check_rule(op, rule_of(op))
    assert rule_text(rule_of(op)) == shown


def test_dimensions_of_unknown_size_have_no_factor() -> None:
    op = last_op("""func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %r = stablehlo.negate %x : tensor<?x4xf32>
      return %r : tensor<?x4xf32> }""")
    check_rule(op, rule_of(op))
    assert rule_text(rule_of(op)) == "1 i -> 1 i"


# --- quantised numbers --------------------------------------------------------------------------

SCALED = "!quant.uniform<i8:f32, 0.5>"
SCALED_BY_COLUMN = "!quant.uniform<i8:f32:1, {0.5, 0.25}>"


@pytest.mark.parametrize("element", [SCALED, SCALED_BY_COLUMN])
def test_a_tile_of_a_value_with_own_scales_would_have_another_type(element: str) -> None:
    for name, source, target in (
        ("uniform_quantize", "f32", element),
        ("uniform_dequantize", element, "f32"),
    ):
        op = last_op(f"""func.func @main(%x: tensor<4x2x{source}>) -> tensor<4x2x{target}> {{
          %r = stablehlo.{name} %x : (tensor<4x2x{source}>) -> tensor<4x2x{target}>
          return %r : tensor<4x2x{target}> }}""")
        check_rule(op, rule_of(op))
        assert rule_text(rule_of(op)) == ("i j -> i j" if element == SCALED else "_ _ -> _ _")


def test_quantised_numbers_are_not_summed_in_parts() -> None:
    left, right, result = (f"tensor<{shape}x{SCALED}>" for shape in ("4x6", "6x8", "4x8"))
    op = last_op(f"""func.func @main(%x: {left}, %y: {right}) -> {result} {{
      %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : ({left}, {right}) -> {result}
      return %r : {result} }}""")
    assert rule_text(rule_of(op)) == "i _, _ j -> i j"
    assert rule_of(op).linear == ()
    op = last_op(f"""func.func @main(%x: {left}, %y: {left}) -> {left} {{
      %r = stablehlo.add %x, %y : {left}
      return %r : {left} }}""")
    assert rule_text(rule_of(op)) == "i j, i j -> i j"
    assert rule_of(op).linear == ()


# --- the check ----------------------------------------------------------------------------------


@pytest.fixture
def dot() -> Operation:
    return last_op("""func.func @main(%x: tensor<4x6xf32>, %y: tensor<6x8xf32>) -> tensor<4x8xf32> {
      %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
      return %r : tensor<4x8xf32> }""")


def broken(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """Every way to break the rule of a matrix product, and what the check says of it."""
    i, j, k = rule.factors
    dims = ((0,), (1,))

    def with_factor(factor: Factor) -> Rule:
        return replace(rule, factors=(i, factor, k) if factor.size == 8 else (i, j, factor))

    yield "has 2 operands, in the rule: 1", replace(rule, operands=rule.operands[:1])
    yield "has 1 results, in the rule: 0", replace(rule, results=())
    yield "has rank 2, in the rule: 1", replace(rule, results=((dims[0],),))
    yield "factors beyond the table", replace(rule, results=(((0,), (7,)),))
    yield "has a factor twice", replace(rule, results=(((0,), (0,)),))
    yield "of size 8 has factors of size: 1", replace(rule, results=(((0,), ()),))
    yield "of size 8 has factors of size: 6", replace(rule, results=(((0,), (2,)),))
    yield "is in no dimension", replace(rule, factors=(i, j, k, Factor(3)))
    yield "must be larger than 1, got: 1", replace(rule, factors=(i, j, k, Factor(1)))
    yield "has no reducer", with_factor(Factor(6, Kind.REDUCTION))
    yield "unknown reducer: sum", with_factor(Factor(6, Kind.REDUCTION, reducer="sum"))
    yield "unknown rewrite: magic", with_factor(Factor(8, rewrite="magic"))
    yield "reducer without partial results", with_factor(Factor(8, reducer="add"))
    yield "special without a rewrite", with_factor(Factor(8, Kind.SPECIAL))
    yield (
        "linear in operands that it does not have, got: [2]",
        replace(rule, linear=(Linearity(frozenset({2}), False, frozenset({"add"})),)),
    )
    yield (
        "linear for unknown reducers",
        replace(rule, linear=(Linearity(frozenset({0}), False, frozenset({"xor"})),)),
    )


def test_check_rule_refuses_what_does_not_fit(dot: Operation) -> None:
    rule = rule_of(dot)
    assert rule.factors == (Factor(4), Factor(8), Factor(6, Kind.REDUCTION, reducer="add"))
    check_rule(dot, rule)
    for message, wrong in broken(rule):
        with pytest.raises(RuleError) as caught:
            check_rule(dot, wrong)
        assert message in caught.value.message


# --- identities ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("element", "literal", "identities"),
    [
        ("f32", "0.0", "add"),
        ("f32", "-0.0", "add"),
        ("f32", "1.0", "mul"),
        ("f32", "0xFF800000", "max"),
        ("f32", "0x7F800000", "min"),
        ("f32", "0x7FC00000", ""),
        ("f32", "-3.40282347E+38", ""),
        ("bf16", "0xFF80", "max"),
        ("f16", "0x7C00", "min"),
        ("f8E5M2", "0xFC", "max"),
        ("i32", "0", "add or"),
        ("i32", "1", "mul"),
        ("i32", "-1", "and"),
        ("i32", "-2147483648", "max"),
        ("i32", "2147483647", "min"),
        ("ui8", "0", "add max or"),
        ("ui8", "255", "and min"),
        ("i1", "true", "and min mul"),
        ("i1", "false", "add max or"),
        ("complex<f32>", "(0.0, 0.0)", "add"),
        ("complex<f32>", "(1.0, 0.0)", "mul"),
        ("complex<f32>", "(0.0, 1.0)", ""),
    ],
)
def test_identities(element: str, literal: str, identities: str) -> None:
    op = last_op(f"""func.func @main() -> tensor<2x3x{element}> {{
      %c = stablehlo.constant dense<{literal}> : tensor<{element}>
      %r = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<{element}>) -> tensor<2x3x{element}>
      return %r : tensor<2x3x{element}> }}""")
    found = {r for r in ("add", "and", "max", "min", "mul", "or") if is_identity(op.results[0], r)}
    assert found == set(identities.split())


@pytest.mark.parametrize(
    ("source", "target", "literal", "identity"),
    [
        ("f32", "bf16", "0xFF800000", "max"),
        ("i32", "f32", "1", "mul"),
        ("f32", "i32", "0xFF800000", None),
        ("f64", "f32", "1.0e300", None),
    ],
)
def test_identities_through_conversions(
    source: str, target: str, literal: str, identity: str | None
) -> None:
    op = last_op(f"""func.func @main() -> tensor<{target}> {{
      %c = stablehlo.constant dense<{literal}> : tensor<{source}>
      %r = stablehlo.convert %c : (tensor<{source}>) -> tensor<{target}>
      return %r : tensor<{target}> }}""")
    found = [r for r in ("add", "max", "mul") if is_identity(op.results[0], r)]
    assert found == ([] if identity is None else [identity])


def test_a_table_of_zeros_and_ones_is_no_identity() -> None:
    op = last_op("""func.func @main() -> tensor<2xf32> {
      %r = stablehlo.constant dense<[0.0, 1.0]> : tensor<2xf32>
      return %r : tensor<2xf32> }""")
    assert not is_identity(op.results[0], "add")


# --- custom calls -------------------------------------------------------------------------------

CALL = """func.func @main(%x: tensor<4x6xf32>, %y: tensor<6x8xf32>) -> tensor<4x8xf32> {
  %r = stablehlo.custom_call @my.matmul(%x, %y) : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32> }"""  # noqa: E501


@pytest.fixture
def clean() -> Iterator[None]:
    yield
    for target in ("my.matmul", "my.*", "mhlo.erf"):
        unregister_custom_call(target)


@pytest.mark.usefixtures("clean")
def test_custom_calls_take_strings_functions_and_patterns() -> None:
    op = last_op(CALL)
    assert rule_text(rule_of(op)) == "_ _, _ _ -> _ _"
    register_custom_call("my.*", "i j, _ k -> i k where j = blocked")
    assert rule_text(rule_of(op)) == "i _, _ j -> i j"
    register_custom_call("my.matmul", "i j, j k -> i k")
    assert rule_text(rule_of(op)) == "i j, j k -> i k where j = add"
    register_custom_call("my.matmul", lambda op: Rule((), (), ()))
    assert rule_of(op) == Rule((), (), ())
    unregister_custom_call("my.matmul")
    assert rule_text(rule_of(op)) == "i _, _ j -> i j"


@pytest.mark.usefixtures("clean")
def test_a_registration_comes_before_what_is_known() -> None:
    op = last_op("""func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
      %r = stablehlo.custom_call @mhlo.erf(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
      return %r : tensor<4x6xf32> }""")
    assert rule_text(rule_of(op)) == "i j -> i j"
    register_custom_call("mhlo.erf", "i _ -> i _")
    assert rule_text(rule_of(op)) == "i _ -> i _"


def call_with(rule: str) -> Operation:
    left, right, result = (f"tensor<{shape}xf32>" for shape in ("4x6", "6x8", "4x8"))
    return last_op(f"""func.func @main(%x: {left}, %y: {right}) -> {result} {{
      %r = "stablehlo.custom_call"(%x, %y) <{{call_target_name = "my.matmul"}}>
        {{sdy.sharding_rule = #sdy.op_sharding_rule<{rule}>}} : ({left}, {right}) -> {result}
      return %r : {result} }}""")


@pytest.mark.usefixtures("clean")
def test_a_rule_written_on_a_call_comes_after_a_registered_one() -> None:
    op = call_with("([i, k], [k, j])->([i, j]) {i=4, j=8, k=6} reduction={k}, custom")
    assert rule_text(rule_of(op)) == "i j, j k -> i k where j = add"
    register_custom_call("my.*", "i _, _ j -> i j")
    assert rule_text(rule_of(op)) == "i _, _ j -> i j"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("([i, k], [k, j])->([i, j]) {i=4, j=8, k=6}, custom", "i j, j k -> i k where j = blocked"),
        ("([i, k], [l, m])->([i, j]) {i=4, j=8, k=6, l=6, m=8}, custom", "i _, _ _ -> i _"),
        ("([i, k], [l, j])->([i, j]) {i=4, j=8, k=6, l=6} need_replication={j}, custom",
         "i _, _ j -> i j where j = blocked"),
    ],
)  # fmt: skip
def test_what_a_written_rule_does_not_promise_is_blocked(written: str, shown: str) -> None:
    assert rule_text(rule_of(call_with(written))) == shown


def test_a_written_rule_that_does_not_fit_is_an_error() -> None:
    op = call_with("([i, k], [k, j])->([i, j]) {i=4, j=7, k=6} reduction={k}, custom")
    with pytest.raises(RuleError, match="of size 8 has factors of size: 7"):
        rule_of(op)


def test_a_malformed_string_is_refused_when_registered() -> None:
    with pytest.raises(RuleError, match=r"<rule of my\.matmul>:1:6"):
        register_custom_call("my.matmul", "i -> j")


@pytest.mark.usefixtures("clean")
def test_a_string_that_does_not_fit_the_op_is_an_error() -> None:
    register_custom_call("my.matmul", "i j -> i j")
    with pytest.raises(RuleError, match=r"1 operands, stablehlo\.custom_call has: 2"):
        rule_of(last_op(CALL))


# --- the memo -----------------------------------------------------------------------------------


def test_equal_ops_share_a_rule_and_what_a_rule_reads_separates() -> None:
    body = """func.func @main(%x: tensor<4x6xf32>) -> tensor<4xf32> {{
      %z = stablehlo.constant dense<{init}> : tensor<f32>
      %r = stablehlo.reduce(%x init: %z) applies stablehlo.{body} across dimensions = [{dim}]
        : (tensor<4x6xf32>, tensor<f32>) -> tensor<{rest}xf32>
      return %r : tensor<{rest}xf32> }}"""
    one = rule_of(last_op(body.format(init="0.0", body="add", dim=1, rest=4)))
    same = rule_of(last_op(body.format(init="0.0", body="add", dim=1, rest=4)))
    other_init = rule_of(last_op(body.format(init="2.0", body="add", dim=1, rest=4)))
    other_body = rule_of(last_op(body.format(init="0.0", body="maximum", dim=1, rest=4)))
    assert one is same
    assert one.factors[1] == Factor(6, Kind.REDUCTION, reducer="add")
    assert other_init.factors[1] == Factor(6, Kind.REDUCTION, reducer="add", rewrite="init_once")
    assert other_body.factors[1] == Factor(6, Kind.REDUCTION, reducer="max")


def test_twenty_thousand_rules_take_less_than_a_second() -> None:
    ops = list(read_module(TABLE.read_text()).walk())
    rounds: list[float] = []
    for _ in range(10):
        start = time.perf_counter()
        for op in ops:
            rule_of(op)
        rounds.append(time.perf_counter() - start)
    assert min(rounds) * 20_000 / len(ops) < 1.0
