"""The language: what a text means, where it is wrong, how it is laid out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partir.partir_dialect.errors import TacticError
from partir.partir_dialect.mesh import Mesh
from partir.tactics import check, parse, script_of
from partir.tactics import objects as o
from partir.tactics import syntax as s
from partir.tactics.fmt import fmt
from partir.tactics.library import library
from partir.tactics.parser import comments
from partir.tactics.units import parse_number

REFERENCE = """\
mesh batch=4, model=2
device tpu_v5e

batch(axis=batch, inputs=["tokens", "targets"])
megatron(axis=model)
zero3(axis=batch)
expect all_to_all.count == 0
expect peak_memory < 16GiB

tactic columns(weights, axis) {
  tile weights dim=1 axis=axis
}
columns(weights="params/*/w_up", axis=model)
"""

LONG = """\
## What this script is for.
mesh batch=4, model=2   # two axes
device "tpu_v5e"

let half = size(batch) // 2
## Tiles some weights.
tactic columns(weights, axis, dim=1) {  # behind
  # inside
  for w in weights {
    if rank(w) >= 2 and not tiled(w, axis) {
      tile w dim=dim axis=axis
    } else {
      stop w axis=axis
    }
  }
}

batch(axis=batch, inputs=["tokens", "targets"]); megatron(axis=model)
columns(
  weights="params/*/w_up",  # a glob

  # a comment of its own
  axis=model,
)
tile params['layer_0']['wq'] dim=-1, axis=model
replicate op "*/attn/softmax" axis=batch
stop result of dot_general using params/*/w[qkv] axis=model
for w, d in columns(axis=model) { tile w dim=d axis=model }
if layers > 2 { zero1(batch) } else if layers == half { zero2(batch) } else { zero3(batch) }
auto(axis=[batch, model], goal="fit", budget=400)
expect all_reduce.count == 4 * layers + params - 1, "as derived"
expect peak_memory <= 1.5GiB or estimated_time < 10ms
"""


def test_the_reference_lines_parse_and_check():
    script = parse(REFERENCE)
    kinds = [type(statement).__name__ for statement in script.statements]
    assert kinds == [
        *("MeshLine", "DeviceLine", "Call", "Call", "Call", "Expect", "Expect"),
        *("TacticDefinition", "Call"),
    ]
    checked = check(script, devices=("cpu", "tpu_v5e"))
    assert checked.mesh == Mesh(batch=4, model=2)
    assert checked.device == "tpu_v5e"


def test_the_tree_of_each_kind_of_statement():
    (action,) = parse("tile params/*/w[qkv] dim=-1, axis=model").statements
    assert action == s.Action(
        "tile",
        s.Pattern("params/*/w[qkv]"),
        (
            s.Option("dim", s.Unary("-", s.Number(1))),
            s.Option("axis", s.Name("model")),
        ),
    )
    (expect,) = parse("expect a.count == 4 * (layers + 1) - 2, 'why'").statements
    product = s.Binary("*", s.Number(4), s.Binary("+", s.Name("layers"), s.Number(1)))
    assert expect == s.Expect(
        s.Binary("==", s.Name("a.count"), s.Binary("-", product, s.Number(2))), "why"
    )
    (loop,) = parse('for w, d in op "*/a", result of add using "x" { }').statements
    assert loop == s.For(
        ("w", "d"), (s.ScopedOp("*/a"), s.Producer("add", s.Pattern("x", True))), ()
    )
    (auto,) = parse("auto(axis=[batch, model],\n budget=400)").statements
    axes = s.Sequence((s.Name("batch"), s.Name("model")))
    assert auto == s.Call(
        "auto", (s.CallArgument("axis", axes), s.CallArgument("budget", s.Number(400)))
    )
    assert auto.text == "auto(axis=[batch, model], budget=400)"


def test_spans_point_at_what_they_name():
    script = parse(LONG, "x.tactic")
    lines = LONG.split("\n")
    for statement in s.walk(script.statements):
        span = statement.span
        assert span.file == "x.tactic"
        assert lines[span.line - 1] == span.text
        assert 1 <= span.column <= len(span.text)
    (call,) = [c for c in script.statements if isinstance(c, s.Call) and c.name == "columns"]
    assert call.where == f"x.tactic:{lines.index('columns(') + 1}:1"


def test_arithmetic_binds_as_usual():
    (let,) = parse("let x = 1 - 2 - 3 * 4 / 2 % 5").statements
    product = s.Binary(
        "%", s.Binary("/", s.Binary("*", s.Number(3), s.Number(4)), s.Number(2)), s.Number(5)
    )
    assert let.value == s.Binary("-", s.Binary("-", s.Number(1), s.Number(2)), product)
    (let,) = parse("let x = not a and b or c < 2").statements
    assert let.value == s.Binary(
        "or",
        s.Binary("and", s.Unary("not", s.Name("a")), s.Name("b")),
        s.Binary("<", s.Name("c"), s.Number(2)),
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        ("1_000", 1000),
        ("0.5", 0.5),
        ("1e6", 1e6),
        ("2.5e-3", 0.0025),
        ("16GiB", 16 * 2**30),
        ("1.5GiB", 3 * 2**29),
        ("25GB", 25 * 10**9),
        ("10ms", 0.01),
        ("3s", 3),
        ("7B", 7),
    ],
)
def test_numbers_and_units(text: str, value: float):
    assert parse_number(text) == pytest.approx(value)
    (let,) = parse(f"let x = {text}").statements
    assert let.value.value == pytest.approx(value)


def test_sizes_in_bytes_are_whole_numbers():
    assert isinstance(parse_number("1.5GiB"), int)


def test_doc_comments_belong_to_what_they_stand_above():
    script = parse(LONG)
    assert script.doc == "What this script is for."
    assert [d.doc for d in script.definitions] == ["Tiles some weights."]
    assert check(script).documented == (("columns(weights, axis, dim=…)", "Tiles some weights."),)


def test_every_library_tactic_says_what_when_and_what_becomes_of_a_program():
    for name, definition in library().items():
        doc = definition.doc
        assert doc, name
        if not doc.splitlines()[0].endswith("in a fused step."):
            assert "Use it" in doc, name


def test_the_library_is_formatted_and_checks():
    from importlib.resources import files

    for entry in files("partir.tactics.library").iterdir():
        if entry.name.endswith(".tactic"):
            text = entry.read_text()
            assert fmt(text) == text, entry.name
            check(parse(text, entry.name))


def test_python_objects_are_statements():
    script = script_of(
        [
            o.Batch("batch", inputs=["tokens", "targets"]),
            o.Megatron("model", vocab=True),
            o.Zero3("batch"),
            o.Auto(["batch", "model"], goal='say "fit"', budget=10),
            o.Tile("params/w", 0, "batch"),
            o.Replicate("tokens", "model"),
            "expect all_to_all.count == 0",
        ]
    )
    assert script == parse(
        """
        batch(axis="batch", inputs=["tokens", "targets"])
        megatron(axis="model", vocab=true)
        zero3(axis="batch")
        auto(axis=["batch", "model"], goal='say "fit"', budget=10)
        tile "params/w" dim=0 axis="batch"
        replicate "tokens" axis="model"
        expect all_to_all.count == 0
        """
    )
    check(script, mesh=Mesh(batch=2, model=2))


def test_a_value_that_the_language_does_not_have():
    with pytest.raises(TypeError, match="tactic language"):
        script_of([o.Batch("batch", inputs=object())])  # type: ignore[arg-type]


# --- layout -------------------------------------------------------------------------------------


def test_fmt_keeps_meaning_and_comments_and_is_idempotent():
    for text in (REFERENCE, LONG):
        formatted = fmt(text)
        assert parse(formatted) == parse(text)
        assert fmt(formatted) == formatted
        assert [str(c) for c in comments(formatted)] == [str(c) for c in comments(text)]
    assert fmt(REFERENCE) == REFERENCE


def test_fmt_lays_out():
    text = """

mesh   batch = 4,model=2# two
batch( axis=batch,inputs=["a" , "b"] ) ; megatron( model )



let x=-1+ 2*- 3
tactic f( a,b = 1 ){tile a dim=b,axis=model
if b>1{stop a axis=model}else{}}
auto(axis=batch,
  budget=4 # evaluations
  )
"""
    assert (
        fmt(text)
        == """\
mesh batch=4, model=2  # two
batch(axis=batch, inputs=["a", "b"])
megatron(model)

let x = -1 + 2 * -3
tactic f(a, b=1) {
  tile a dim=b, axis=model
  if b > 1 {
    stop a axis=model
  } else {}
}
auto(
  axis=batch,
  budget=4,  # evaluations
)
"""
    )


def test_fmt_of_nothing():
    assert fmt("") == ""
    assert fmt("\n\n  \n") == ""
    assert fmt("\n# only\n\n\n# comments\n\n") == "# only\n\n# comments\n"


_NAMES = st.sampled_from(["batch", "w", "params", "axis", "layers", "x1"])
_VALUES = st.recursive(
    st.one_of(
        _NAMES,
        st.integers(0, 99).map(str),
        st.sampled_from(['"params/*/w"', "'x'", "true", "none", "16GiB", "-2"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"),
        st.tuples(inner, st.sampled_from("+-*/%"), inner).map("".join).map(lambda t: f"({t})"),
        st.tuples(_NAMES, inner).map(lambda p: f"{p[0]}( {p[1]} )"),
    ),
    max_leaves=5,
)
_SPACE = st.sampled_from([" ", "  ", "\t"])
_BREAK = st.sampled_from(["\n", "\n\n\n", "  # why\n", "\n# own line\n", ";"])
_SIMPLE = st.one_of(
    st.tuples(_NAMES, _VALUES, _VALUES).map(lambda p: f"{p[0]}({p[1]},\n axis={p[2]})"),
    st.tuples(_NAMES, _VALUES).map(lambda p: f"tile {p[0]} dim={p[1]} axis=model"),
    st.tuples(_NAMES, _VALUES).map(lambda p: f"let {p[0]}={p[1]}"),
    st.tuples(_VALUES, _VALUES).map(lambda p: f"expect {p[0]} <{p[1]}"),
)
_BLOCK = st.tuples(_NAMES, st.lists(_SIMPLE, max_size=3), _BREAK).map(
    lambda p: f"for {p[0]} in params {{ {p[2].join(p[1])} \n}}"
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.one_of(_SIMPLE, _BLOCK), _BREAK), max_size=6))
def test_fmt_of_any_script(parts: list[tuple[str, str]]):
    text = "".join(statement + end for statement, end in parts)
    formatted = fmt(text)
    assert parse(formatted) == parse(text)
    assert fmt(formatted) == formatted
    assert [str(c) for c in comments(formatted)] == [str(c) for c in comments(text)]
    assert all(line == line.rstrip() and "\t" not in line for line in formatted.split("\n"))


# --- faults -------------------------------------------------------------------------------------


def _fault(text: str) -> TacticError | None:
    try:
        check(parse(text, "s.tactic"), mesh=Mesh(batch=4, model=2), devices=("cpu", "tpu_v5e"))
    except TacticError as error:
        return error
    return None


def test_malformed_scripts():
    """Each has one located error with a hint; the texts are kept in `malformed.txt` to be read."""
    blocks = _malformed()
    assert len(blocks) >= 150
    for text, wanted in blocks:
        error = _fault(text)
        assert error is not None, text
        assert error.span is not None, text
        assert error.render() == wanted, text


def _malformed() -> list[tuple[str, str]]:
    """Script and rendered error, separated by `---`, one block between lines of `===`."""
    text = (Path(__file__).parent / "test_tactic_malformed.txt").read_text()
    blocks = text.split("\n===\n")
    pairs: list[tuple[str, str]] = []
    for block in blocks:
        script, _, error = block.partition("\n---\n")
        pairs.append((script, error.rstrip("\n")))
    return pairs


def test_a_script_cut_off_anywhere_has_at_most_one_located_error():
    for end in range(len(LONG)):
        error = _fault(LONG[:end])
        if error is None:
            continue
        assert error.span is not None
        assert error.span.line <= LONG[:end].count("\n") + 1
        assert error.render().startswith("s.tactic:")
        assert "\n" in error.render() or not error.span.text


def test_a_word_misspelt_anywhere_has_a_located_error():
    import re

    base = LONG.replace("# ", "")
    for match in re.finditer(r"[a-z_]{4,}", LONG):
        word = match.group()
        line = LONG[LONG.rfind("\n", 0, match.start()) + 1 : match.start()]
        if "#" in line or '"' in line:
            continue
        broken = LONG[: match.start()] + word[:-1] + "qq" + LONG[match.end() :]
        error = _fault(broken)
        if error is not None:
            assert error.span is not None, broken
            assert error.span.line >= 1
    assert base


_DEEP = {
    "not": "let x = " + "not " * 5000 + "true",
    "if": "if true {" * 2000 + "}" * 2000,
    "list": "let x = " + "[" * 5000 + "]" * 5000,
    "sum": "let x = " + "1 + " * 5000 + "1",
    "call": "let x = " + "f(" * 3000 + ")" * 3000,
    "minus": "let x = " + "-" * 5000 + "1",
    "else": "if a { }" + " else if a { }" * 2000,
}


@pytest.mark.parametrize("kind", _DEEP)
def test_hostile_nesting_is_a_fault(kind: str):
    error = _fault(_DEEP[kind])
    assert error is not None and error.span is not None
    assert "nested too deeply" in error.message or "more than" in error.message


def test_what_a_person_writes_is_not_nested_too_deeply():
    parse("let x = " + "(1 + " * 30 + "1" + ")" * 30)
    parse("let x = " + " + ".join(["1"] * 100))
    parse("if a {\n" * 8 + "}\n" * 8)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="abw =()[]{}\"'#,.;\n*/+-<>0123456789_é\t", max_size=60))
def test_any_text_is_a_script_or_one_located_fault(text: str):
    error = _fault(text)
    assert error is None or error.span is not None


def test_a_wrong_character():
    for character in "\0\x0b\u2028@$%^&|~":
        error = _fault(f"batch(axis=batch)\n{character}")
        assert error is not None and error.span is not None
        assert error.span.line == 2
