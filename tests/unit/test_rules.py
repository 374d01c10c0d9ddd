"""The rule of every op kind, against tables written by hand (`test_rules.mlir`)."""

from __future__ import annotations

import re
from functools import cache
from math import prod
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation

from partir.partir_dialect.reader import read_module
from partir.partir_dialect.rules import REDUCERS, Dims, Kind, Rule, check_rule, rule_of, rule_text

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


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("pad_zero", 2),  # 6 to 8
        ("slice", 4),  # 12 to 8
        ("slice_strided", 6),  # 12 to 6
        ("concatenate", 2),  # 6, 2, 4 to 12
        ("convolution_strided_padded", 4),  # 8 to 4
        ("reverse", 6),
        ("slice_one", 12),
    ],
)
def test_a_special_factor_has_the_common_divisor_of_its_dimensions(name: str, size: int) -> None:
    special = [f for f in rule_of(operations()[name]).factors if f.kind is Kind.SPECIAL]
    assert [factor.size for factor in special] == [size]


shapes = st.lists(st.sampled_from([1, 2, 3, 4, 5, 6, 12]), min_size=1, max_size=5)


@given(shapes, st.randoms(use_true_random=False))
def test_reshape_keeps_the_tiles_of_leading_factors(dims: list[int], random: Random) -> None:
    """Every usable factor numbers the same elements on both sides, whatever the two shapes."""
    source = tuple(dims)
    target = tuple(regrouped(dims, random))
    rule = rule_of(a_reshape(source, target))
    check_rule(a_reshape(source, target), rule)
    numbers = np.arange(prod(source))
    left, right = numbers.reshape(source), numbers.reshape(target)
    for factor in range(len(rule.factors)):
        if rule.factors[factor].kind is Kind.PARALLEL:
            np.testing.assert_array_equal(
                digit(left, rule.operands[0], rule, factor),
                digit(right, rule.results[0], rule, factor),
            )


def regrouped(dims: list[int], random: Random) -> list[int]:
    """Another shape with as many elements: the prime factors, shuffled and multiplied together."""
    primes = [p for n in dims for p in {4: [2, 2], 6: [2, 3], 12: [2, 2, 3]}.get(n, [n])]
    random.shuffle(primes)
    shape: list[int] = []
    for prime in primes:
        if shape and random.random() < 0.4:
            shape[-1] *= prime
        else:
            shape.append(prime)
    return shape


def a_reshape(source: tuple[int, ...], target: tuple[int, ...]) -> Operation:
    left, right = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in (source, target))
    module = read_module(f"""func.func @main(%x: {left}) -> {right} {{
      %r = stablehlo.reshape %x : ({left}) -> {right}
      return %r : {right} }}""")
    return next(op for op in module.walk() if op.name == "stablehlo.reshape")


def digit(numbers: np.ndarray, dims: Dims, rule: Rule, factor: int) -> np.ndarray:
    """For each element, in order of its number, where it is along the factor."""
    for d, made_of in enumerate(dims):
        if factor in made_of:
            minor = prod(rule.factors[f].size for f in made_of[made_of.index(factor) + 1 :])
            where = np.indices(numbers.shape)[d] // minor % rule.factors[factor].size
            return where.reshape(-1)[np.argsort(numbers.reshape(-1))]
    raise AssertionError("the factor is in no dimension")
