"""The reference page, the how-to and the colouring of scripts agree with the language."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from partir.partir_dialect.mesh import Mesh
from partir.tactics import check, parse
from partir.tactics.fmt import fmt
from partir.tactics.library import library
from partir.tactics.parser import tokens
from partir.tactics.primitives import PRIMITIVES
from partir.tactics.reference import PARTS, main, renewed
from partir.tactics.words import KEYWORDS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "tactics.md").read_text()


def blocks(kind: str = r"[\w-]*") -> list[str]:
    return re.findall(rf"```tactic ?{kind}\n(.*?)```", PAGE, re.S)


def test_the_generated_parts_are_up_to_date():
    assert renewed(PAGE) == PAGE
    assert main([str(DOCS / "tactics.md"), "--check"]) == 0


def test_every_part_has_its_place_and_every_tactic_its_section():
    assert re.findall(r"<!-- generated: (\w+) -->", PAGE) == [
        *("units", "words", "library", "functions", "facts", "quantities", "grammar")
    ]
    assert set(PARTS) == set(re.findall(r"<!-- generated: (\w+) -->", PAGE))
    for name in (*library(), *PRIMITIVES):
        assert f"### `{name}(" in PAGE, name


def test_a_stale_page_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- generated: units -->\nold\n<!-- end -->\nafter\n")
    assert main([str(page), "--check"]) == 1
    assert "not up to date" in capsys.readouterr().out
    assert main([str(page)]) == 0
    assert "`GiB`" in page.read_text()
    assert page.read_text().startswith("before\n") and page.read_text().endswith("after\n")
    assert main([str(page), "--check"]) == 0


def test_every_script_of_the_page_checks_and_is_formatted():
    assert len(blocks()) == 3
    for text in blocks():
        script = parse(text, "docs/tactics.md")
        check(script, devices=("tpu_v5e",))
        assert fmt(text) == text


def test_the_five_lines_of_the_how_to():
    (text,) = blocks("howto")
    assert len(text.strip().split("\n")) == 5
    checked = check(parse(text))
    assert checked.mesh == Mesh(batch=8)


# --- colouring ------------------------------------------------------------------------------------

GRAMMAR = json.loads((DOCS / "tactic.tmLanguage.json").read_text())


def colours(line: str) -> list[tuple[str, str]]:
    """What an editor makes of a line: (scope, text), the leftmost, then the first rule winning."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(line):
        matches = [
            (m.start(), order, m, rule)
            for order, rule in enumerate(GRAMMAR["patterns"])
            if (m := re.compile(rule["match"]).search(line, at)) and m.end() > at
        ]
        if not matches:
            break
        _, _, match, rule = min(matches, key=lambda item: item[:2])
        for group, capture in rule.get("captures", {}).items():
            found.append((capture["name"], match.group(int(group))))
        if "name" in rule:
            found.append((rule["name"], match.group()))
        at = match.end()
    return found


def test_every_word_of_the_language_is_coloured():
    for word in KEYWORDS:
        scopes = [scope for scope, text in colours(f"{word} x") if text == word]
        assert scopes and scopes[0].startswith(("keyword.", "constant.", "storage.")), word


def test_colours_of_a_script():
    assert colours('batch(axis=batch, inputs=["a"])  # why') == [
        ("entity.name.function.tactic", "batch"),
        ("variable.parameter.tactic", "axis"),
        ("keyword.operator.tactic", "="),
        ("variable.parameter.tactic", "inputs"),
        ("keyword.operator.tactic", "="),
        ("string.quoted.double.tactic", '"a"'),
        ("comment.line.number-sign.tactic", "# why"),
    ]
    assert colours("tactic f(a) {")[:2] == [
        ("storage.type.tactic", "tactic"),
        ("entity.name.function.tactic", "f"),
    ]
    assert colours("## what")[0] == ("comment.line.documentation.tactic", "## what")


def test_comments_and_strings_are_coloured_as_the_parser_sees_them():
    text = "".join(blocks())
    wanted = [str(t) for t in tokens(text) if t.type in ("STRING", "COMMENT")]
    coloured = [
        piece
        for line in text.split("\n")
        for scope, piece in colours(line)
        if scope.startswith(("string.", "comment."))
    ]
    assert coloured == wanted
