"""The rule of every op kind, against tables written by hand (`test_rules.mlir`)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation

from partir.partir_dialect.reader import read_module
from partir.partir_dialect.rules import REDUCERS, Rule, check_rule, rule_of, rule_text

TABLE = Path(__file__).with_name("test_rules.mlir")
_ROW = re.compile(
    r"// rule: (?P<rule>.*)\n(?:// linear: (?P<linear>.*)\n)?(?:// shardy: .*\n)?"
    r"func\.func @(?P<name>\w+)"
)


@cache
def rows() -> dict[str, tuple[str, str]]:
    """Function name -> (rule, linearity) as written in the table."""
    found = _ROW.finditer(TABLE.read_text())
    return {m["name"]: (m["rule"].strip(), (m["linear"] or "").strip()) for m in found}


@cache
def operations() -> dict[str, Operation]:
    """Function name -> the op under test."""
    module = read_module(TABLE.read_text(), str(TABLE))
    found: dict[str, Operation] = {}
    for function in module.body.block.ops:
        assert isinstance(function, FuncOp)
        terminator = function.body.block.last_op
        assert isinstance(terminator, ReturnOp)
        owner = terminator.operands[0].owner
        assert isinstance(owner, Operation)
        found[function.sym_name.data] = owner
    return found


def linear_text(rule: Rule) -> str:
    """The linearity column in the notation of the table."""
    return " ".join(
        f"{'joint' if row.joint else 'single'}({' '.join(map(str, sorted(row.operands)))}: "
        f"{'*' if row.reducers == REDUCERS else ' '.join(sorted(row.reducers))})"
        for row in rule.linear
    )


def test_every_function_of_the_table_has_a_row() -> None:
    assert operations().keys() == rows().keys()
    assert len(rows()) > 200


@pytest.mark.parametrize("name", rows())
def test_rule(name: str) -> None:
    op = operations()[name]
    rule = rule_of(op)
    check_rule(op, rule)
    assert rule_text(rule) == rows()[name][0]
    assert linear_text(rule) == rows()[name][1]
