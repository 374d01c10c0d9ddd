"""Which statements cannot hold together, in the user's words."""

from __future__ import annotations

import itertools

from partir.engine.session import Session
from partir.tactics import parse
from partir.tactics.clash import clashes

X = "tensor<8x8xf32>"
CHAIN = f"""
func.func @main(%x: {X} loc("batch['x']"), %w: {X} loc("params['w']"), %u: {X} loc("params['u']"))
    -> {X} {{
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({X}, {X}) -> {X}
  %y = stablehlo.dot_general %h, %u, contracting_dims = [1] x [0] : ({X}, {X}) -> {X}
  return %y : {X}
}}
"""


def found(case, text: str, measure=None):
    c = case(CHAIN, batch=2, model=2)
    return clashes(parse(text, "s.tactic"), lambda: Session(c.graph, c.mesh), measure=measure)


def test_the_statement_that_is_to_blame_is_named_and_no_other(case):
    text = """
    tile params/u dim=1 axis=model
    tile params/w dim=0 axis=batch
    stop result/0 axis=model
    tile batch/x dim=0 axis=batch
    """
    (clash,) = found(case, text)
    assert [st.text for st in clash.statements] == [
        "tile params/w dim=0 axis=batch",
        "tile batch/x dim=0 axis=batch",
    ]
    assert "s.tactic:3:5" in clash.text and "s.tactic:5:5" in clash.text
    assert "batch tiles dimension 1 of it" in clash.reason


def test_what_holds_together_has_no_clash(case):
    assert found(case, "batch(axis=batch)\nmegatron(axis=model)\nzero3(axis=batch)") == ()


def test_an_expectation_clashes_with_what_breaks_it(case):
    text = """
    batch(axis=batch)
    megatron(axis=model)
    zero3(axis=batch)
    expect all_gather.count == 0
    expect all_reduce.count <= 1
    """
    (clash,) = found(case, text)
    # gathers need both: zero3 alone makes the first product a sum
    names = [st.text for st in clash.statements]
    assert names[-1] == "expect all_gather.count == 0"
    assert "zero3(axis=batch)" in names and "megatron(axis=model)" not in names


def test_without_any_one_of_them_there_is_no_clash(case):
    """The definition of minimal, by trying all subsets."""
    text = """
    tile params/u dim=0 axis=model
    tile params/w dim=0 axis=batch
    replicate params/u axis=batch
    tile params/w dim=0 axis=model
    """
    for clash in found(case, text):
        script = parse(text, "s.tactic")
        *others, last = clash.statements
        for size in range(len(others)):
            for part in itertools.combinations(others, size):
                rest = type(script)((*part, last))
                c = case(CHAIN, batch=2, model=2)
                assert clashes(rest, lambda c=c: Session(c.graph, c.mesh)) == ()


def test_definitions_are_kept(case):
    text = """
    tactic rows(axis) { tile params/w dim=0 axis=axis }
    let a = 0
    rows(axis=batch)
    tile batch/x dim=a axis=batch
    """
    (clash,) = found(case, text)
    assert [st.text for st in clash.statements] == [
        "rows(axis=batch)",
        "tile batch/x dim=a axis=batch",
    ]
