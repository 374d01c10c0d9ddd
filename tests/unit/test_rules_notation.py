"""Rule strings: what they mean, and where an error in one is shown."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import TensorType, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from partir.partir_dialect.errors import RuleError
from partir.partir_dialect.reader import read_module
from partir.partir_dialect.rules import (
    Factor,
    Kind,
    check_rule,
    parse_rule,
    rule_of,
    rule_text,
)

TABLE = Path(__file__).with_name("test_rules.mlir")

Shape = tuple[int, ...]


def an_op(operands: list[Shape], results: list[Shape]) -> Operation:
    values = test.TestOp(result_types=[TensorType(f32, shape) for shape in operands]).results
    return test.TestOp(operands=values, result_types=[TensorType(f32, shape) for shape in results])


@pytest.mark.parametrize(
    ("text", "operands", "results", "shown"),
    [
        ("i j, j k -> i k", [(4, 6), (6, 8)], [(4, 8)], "i j, j k -> i k where j = add"),
        ("a b,b c->a c", [(4, 6), (6, 8)], [(4, 8)], "i j, j k -> i k where j = add"),
        ("i j -> i where j = max", [(4, 6)], [(4,)], "i j -> i where j = max"),
        ("i j -> i where j = sum", [(4, 6)], [(4,)], "i j -> i where j = add"),
        ("i j -> i j where j = blocked", [(4, 6)], [(4, 6)], "i j -> i j where j = blocked"),
        ("b _ -> b _, b _", [(4, 6)], [(4, 2), (4, 2)], "i _ -> i _, i _"),
        ("... m n -> ... m n", [(2, 3, 4, 6)], [(2, 3, 4, 6)], "i j k l -> i j k l"),
        ("... m n -> ... m n", [(4, 6)], [(4, 6)], "i j -> i j"),
        ("... i j, ... j k -> ... i k", [(2, 4, 6), (2, 6, 8)], [(2, 4, 8)],
         "i j k, i k l -> i j l where k = add"),
        ("(g i) k -> g (i k)", [(8, 3)], [(2, 12)], "(i j) k -> i (j k)"),
        ("(a b) -> a b", [(24,)], [(4, 6)], "(i j) -> i j"),
        ("i, () -> i", [(4,), ()], [(4,)], "i, () -> i"),
        ("i 1 -> i", [(4, 1)], [(4,)], "i 1 -> i"),
        ("i j -> i j", [(4, 1)], [(4, 1)], "i 1 -> i 1"),
        ("-> ()", [], [()], "-> ()"),
    ],
)  # fmt: skip
def test_meaning(text: str, operands: list[Shape], results: list[Shape], shown: str) -> None:
    op = an_op(operands, results)
    rule = parse_rule(text).rule_of(op)
    check_rule(op, rule)
    assert rule_text(rule) == shown


def test_factors_of_a_product_have_their_sizes() -> None:
    rule = parse_rule("(g i) k -> g (i k)").rule_of(an_op([(8, 3)], [(2, 12)]))
    assert rule.factors == (Factor(2), Factor(4), Factor(3))
    assert rule.operands == (((0, 1), (2,)),) and rule.results == (((0,), (1, 2)),)


def test_default_of_a_missing_factor_is_a_sum() -> None:
    rule = parse_rule("i j -> i").rule_of(an_op([(4, 6)], [(4,)]))
    assert rule.factors[1] == Factor(6, Kind.REDUCTION, reducer="add")


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("i j, j k", 9, "expected '->'"),
        ("i j -> i k", 10, "no operand has the factor: 'k'"),
        ("i i -> i", 3, "occurs twice in one value: 'i'"),
        ("i j -> i where k = max", 16, "no operand has the factor: 'k'"),
        ("i j -> i where i = max", 16, "a result has the factor that is combined: 'i'"),
        ("i j -> i where j = most", 20, "unknown kind of factor: 'most'"),
        ("i j -> i where j max", 18, "expected '='"),
        ("i, -> i", 4, "a scalar is written ()"),
        ("i ... -> i", 3, "'...' must come first"),
        ("(i -> i", 4, "expected a factor or ')'"),
        ("i ? -> i", 3, "expected a factor, got: '?'"),
        ("i () -> i", 1, "has no dimensions beside it"),
        ("i -> i i2", 8, "no operand has the factor: 'i2'"),
        ("i -> i -> i", 8, "expected the end of the rule"),
    ],
)
def test_errors_point_at_the_place(text: str, column: int, message: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse_rule(text, "<rule of my.op>")
    assert message in caught.value.message
    assert caught.value.span is not None
    assert (caught.value.span.file, caught.value.span.column) == ("<rule of my.op>", column)
    assert "^" in caught.value.render()


def test_an_unknown_kind_has_a_suggestion() -> None:
    with pytest.raises(RuleError, match="did you mean 'max'"):
        parse_rule("i j -> i where j = maxx")


@pytest.mark.parametrize(
    ("text", "operands", "results", "message"),
    [
        ("i j, j k -> i k", [(4, 6)], [(4, 8)], "the rule has 2 operands, test.op has: 1"),
        ("i j -> i", [(4, 6)], [(4,), (4,)], "the rule has 1 results, test.op has: 2"),
        ("i j -> i", [(4, 6, 2)], [(4,)], "operand 0 has 2 dimensions in the rule, in the op: 3"),
        ("() -> i", [(4,)], [(4,)], "no operand has the factor"),
        ("i j, j -> i", [(4, 6), (5,)], [(4,)], "are of size 6, the dimension: 5"),
        ("(i j) -> (i j)", [(8,)], [(8,)], "the sizes of these factors are not known"),
        ("(i j), i -> i j", [(8,), (3,)], [(3, 2)], "are of size 6, the dimension: 8"),
        ("(i j), (j i), i -> i", [(8,), (8,), (2,)], [(2,)], "factors in two orders"),
        ("... i -> i", [()], [(4,)], "operand 0 has 2 dimensions in the rule, in the op: 0"),
    ],
)
def test_shapes_that_do_not_fit(
    text: str, operands: list[Shape], results: list[Shape], message: str
) -> None:
    with pytest.raises(RuleError) as caught:
        parse_rule(text).rule_of(an_op(operands, results))
    assert message in caught.value.message
    assert caught.value.span is not None


def rules_of_the_table() -> list[tuple[str, str]]:
    """(name, rule) of every row that a string can say: no rewrites, no factor of results alone."""
    rows = re.findall(r"// rule: (.*)\n(?:// .*\n)*func\.func @(\w+)", TABLE.read_text())
    generating = {"broadcast", "broadcast_in_dim", "broadcast_in_dim_expand", "constant_splat"}
    generating.add("reshape_coprime")
    unsayable = re.compile(r"special|init_once|convolution_groups")
    return [(n, r) for r, n in rows if not unsayable.search(r) and n not in generating]


@cache
def operations() -> dict[str, Operation]:
    found: dict[str, Operation] = {}
    for function in read_module(TABLE.read_text()).body.block.ops:
        assert isinstance(function, FuncOp) and function.body.block.last_op is not None
        owner = function.body.block.last_op.operands[0].owner
        assert isinstance(owner, Operation)
        found[function.sym_name.data] = owner
    return found


@pytest.mark.parametrize(("name", "text"), rules_of_the_table())
def test_what_is_printed_can_be_parsed(name: str, text: str) -> None:
    op = operations()[name]
    rule = parse_rule(text).rule_of(op)
    assert rule_text(rule) == text
    assert sorted(map(str, rule.factors)) == sorted(map(str, rule_of(op).factors))
