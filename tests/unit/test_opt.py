"""`partir-opt`: what it reads, writes, and says when the input is at fault."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest
from xdsl.universe import Universe

from partir.cli.opt import main
from partir.cli.universe import PARTIR_UNIVERSE, PASSES

GOOD = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.mlir"
    path.write_text(GOOD, encoding="utf-8")
    return path


def test_every_pass_is_there_under_its_name() -> None:
    for name in PASSES:
        assert PARTIR_UNIVERSE.all_passes[name]().name == name


def test_every_dialect_is_there_under_its_name() -> None:
    for name, factory in PARTIR_UNIVERSE.all_dialects.items():
        assert factory().name == name


def test_xdsl_finds_partir_and_nothing_is_defined_twice() -> None:
    assert "partir" in {plugin.name for plugin in entry_points(group="xdsl.universe")}
    found = Universe.get_multiverse()
    assert {"partir", "stablehlo", "chlo", "sdy"} <= set(found.all_dialects)
    assert set(PASSES) <= set(found.all_passes)


def test_the_output_file_is_written(good: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.mlir"
    assert main([str(good), "-o", str(out)]) == 0
    assert "func.func @main(%x: tensor<4xf32>)" in out.read_text(encoding="utf-8")


def test_a_failing_pass_leaves_the_output_file_as_it_was(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.mlir"
    out.write_text("before", encoding="utf-8")
    assert main([str(good), "-p", "partir-loops", "-o", str(out)]) == 2
    assert out.read_text(encoding="utf-8") == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.mlir", "out.mlir"]
    assert "error: nest form is needed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (GOOD, ["-p", "partir-prepar"], "error: Unrecognized passes: ['partir-prepar']"),
        (GOOD, ["-p", "partir-prepare{depth=2}"], "error: "),
        (GOOD, ["-p", "partir-prepare{/}"], "error: "),
        ("func.func @f( {}", [], "bad.mlir:1:15: error: "),
        (GOOD + "\n// -----\nnonsense\n", ["--split-input-file"], "bad.mlir:6:1: error: "),
        (GOOD.replace("return %x", "return %y"), [], "bad.mlir:2:10: error: undefined value"),
        (GOOD.replace("-> tensor<4xf32>", "-> tensor<5xf32>"), [], "error: "),
    ],
)
def test_faults_of_the_input(
    text: str,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text(text, encoding="utf-8")
    assert main([str(path), *arguments]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize("name", ["missing.mlir", "good.txt"])
def test_files_that_cannot_be_read(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.txt").write_text(GOOD, encoding="utf-8")
    assert main([str(tmp_path / name)]) == 2
    assert name in capsys.readouterr().err


def test_debug_shows_where(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(good), "-p", "partir-loops", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err
