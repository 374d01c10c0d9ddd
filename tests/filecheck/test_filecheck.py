"""Runs the `// RUN:` lines of the `.mlir` files here, in this process.

Written for lit (`lit tests/filecheck` runs them too): a line is a pipe of `partir-opt` or `partir`,
perhaps after `not`, perhaps with `2>&1`, that ends in `filecheck`.
"""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

HERE = Path(__file__).parent


def _opt(arguments: Sequence[str]) -> int:
    from partir.cli.opt import main

    return main(arguments)


def _partir(arguments: Sequence[str]) -> int:
    from partir.cli.main import main

    return main(list(arguments))


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {"partir-opt": _opt, "partir": _partir}


def run_lines(path: Path) -> list[str]:
    """The commands of the RUN lines of a file; a line that ends in a backslash goes on."""
    commands: list[str] = []
    unfinished = False
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("// RUN:"):
            continue
        text = line.removeprefix("// RUN:").strip()
        if unfinished:
            text = commands.pop() + " " + text
        unfinished = text.endswith("\\")
        commands.append(text.removesuffix("\\").strip())
    return commands


def stages(command: str, path: Path) -> list[list[str]]:
    """The words of each stage of a pipe, `%s` being the file."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    words: list[list[str]] = [[]]
    for word in lexer:
        if word == "|":
            words.append([])
        else:
            words[-1].append(word.replace("%s", str(path)))
    return words


def run_tool(words: Sequence[str], stdin: str) -> str:
    """What one stage writes; fails unless it ends as the line says."""
    fails = words[0] == "not"
    words = words[1:] if fails else words
    both = "2>&1" in words
    arguments = [word for word in words[1:] if word != "2>&1"]
    assert "--disable-verify" not in arguments, "this would turn verification off for all tests"
    out, err = io.StringIO(), io.StringIO()
    standard, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin.encode()))
    try:
        with redirect_stdout(out), redirect_stderr(out if both else err):
            status = COMMANDS[words[0]](arguments)
    finally:
        sys.stdin = standard
    assert (status != 0) == fails, f"{' '.join(words)}: status {status}\n{err.getvalue()}"
    return out.getvalue()


def check(words: Sequence[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Matches the text with the CHECK lines of the file."""
    options = parse_argv_options(list(words))
    matcher = Matcher(options, FInput("-", text), Parser.from_opts(options))
    status = matcher.run()
    if status:
        pytest.fail(f"{capsys.readouterr().err}\nthe whole output:\n{text}", pytrace=False)


CASES = [(p, line) for p in sorted(HERE.rglob("*.mlir")) for line in run_lines(p)]


@pytest.mark.parametrize(
    ("path", "command"), CASES, ids=[f"{p.relative_to(HERE)}:{k}" for k, (p, _) in enumerate(CASES)]
)
def test_file(path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    *tools, last = stages(command, path)
    assert last[0] == "filecheck", f"a RUN line ends in filecheck, got: {last[0]}"
    text = ""
    for words in tools:
        text = run_tool(words, text)
    check(last, text, capsys)


def test_every_file_has_a_run_line_and_a_check() -> None:
    for path in sorted(HERE.rglob("*.mlir")):
        text = path.read_text(encoding="utf-8")
        assert run_lines(path), f"{path} runs nothing"
        assert "CHECK" in text, f"{path} checks nothing"


def test_a_check_that_does_not_match_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text("// CHECK: partir.loop\n", encoding="utf-8")
    with pytest.raises(pytest.fail.Exception):
        check(["filecheck", str(path)], "no such op\n", capsys)


def test_run_lines_go_on_after_a_backslash(tmp_path: Path) -> None:
    path = tmp_path / "long.mlir"
    path.write_text("// RUN: partir-opt %s \\\n// RUN: | filecheck %s\n", encoding="utf-8")
    (command,) = run_lines(path)
    assert stages(command, path) == [["partir-opt", str(path)], ["filecheck", str(path)]]
