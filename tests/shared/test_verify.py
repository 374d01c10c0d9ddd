"""Do the public files and the real programs get the verdict that jaxlib's verifier gives them?

Negative tests of StableHLO and Shardy are the files marked `partly` in the corpus' index: most of
their pieces have to be rejected. Pieces with dialects that jaxlib does not know are left out.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from partir.partir_dialect.errors import ReadError
from partir.partir_dialect.reader import read_module, verify_module

CHILD = """
import json, sys
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo
registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context = ir.Context()
context.append_dialect_registry(registry)
context.load_all_available_dialects()
for dialect in (stablehlo, sdy, chlo):
    dialect.register_dialect(context)
with context:
    for text in json.load(sys.stdin):
        try:
            verdict = ir.Module.parse(text).operation.verify()
        except Exception as error:
            verdict = str(error)
        print(json.dumps(verdict), flush=True)
"""
STRIDE = 8  # of the files that hold nothing to reject, every eighth is read


@dataclass(frozen=True)
class Piece:
    """One piece of a file, between `// -----` lines."""

    file: str
    number: int
    text: str


def pieces_of(shared: Path, *, negative: bool) -> list[Piece]:
    with (shared / "corpus" / "index.csv").open() as table:
        rows = list(csv.DictReader(table))
    wanted = [row for row in rows if (row["parses_with_jaxlib"] == "partly") == negative]
    if not negative:
        sound = [row for row in wanted if row["parses_with_jaxlib"] == "yes"]
        wanted = [row for row in sound if int(row["bytes"]) < 100_000][::STRIDE]
    out: list[Piece] = []
    for row in wanted:
        text = (shared / "corpus" / row["file"]).read_text(errors="replace")
        parts = re.split(r"(?m)^// -----.*$", text)
        out.extend(Piece(row["file"], number, part) for number, part in enumerate(parts))
    return out


def verdicts(texts: list[str]) -> list[str | None]:
    """None where MLIR accepts a text, else what it says (`killed` if it died of it)."""
    out: list[str | None] = []
    while len(out) < len(texts):
        done = subprocess.run(
            [sys.executable, "-c", CHILD],
            input=json.dumps(texts[len(out) :]),
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        out.extend(None if line is True else str(line) for line in lines)
        if done.returncode != 0:
            out.append("killed")
    return out


def fault_of(text: str) -> str | None:
    """What we say of a text, with the place; None if it is sound."""
    try:
        verify_module(read_module(text), text)
    except ReadError as error:
        assert error.span is not None, f"a fault without a place: {error.message}"
        return str(error)
    return None


def judged(said: str | None) -> bool:
    """Whether jaxlib knew all dialects of a text and lived."""
    return said is None or not ("unregistered" in said or said == "killed")


@cache
def differences(shared: Path, negative: bool) -> tuple[int, int, tuple[str, ...]]:
    """How many pieces were sound and how many not, and where we see it otherwise."""
    pieces = pieces_of(shared, negative=negative)
    told = verdicts([piece.text for piece in pieces])
    wrong: list[str] = []
    counts = [0, 0]
    for piece, said in zip(pieces, told, strict=True):
        if not judged(said):
            continue
        counts[said is not None] += 1
        fault = fault_of(piece.text)
        if (fault is None) != (said is None):
            wrong.append(f"{piece.file} piece {piece.number}: MLIR {said}, we {fault}")
    return counts[0], counts[1], tuple(wrong)


def test_negative_files_get_the_verdict_of_mlir(shared: Path) -> None:
    sound, unsound, wrong = differences(shared, True)
    assert sound > 300
    assert unsound > 650
    assert len(wrong) <= 0.01 * (sound + unsound), "\n".join(wrong)


def test_sound_files_are_sound(shared: Path) -> None:
    sound, unsound, wrong = differences(shared, False)
    assert sound > 200
    assert unsound == 0
    assert not wrong, "\n".join(wrong)


def test_every_program_verifies(programs: Path) -> None:
    both = sorted(programs.glob("*.mlir"))
    paths = [p for p in both if ".generic." not in p.name or p.stat().st_size < 200_000]
    assert len(paths) > 90
    faults = {path.name: fault_of(path.read_text()) for path in paths}
    assert {name: fault for name, fault in faults.items() if fault is not None} == {}


def test_verification_is_cheap(programs: Path) -> None:
    module = read_module((programs / "t_train_L32.mlir").read_text())
    ops = sum(1 for _ in module.walk())
    start = time.process_time()
    module.verify()
    seconds = time.process_time() - start
    assert ops > 20_000
    assert seconds < 100e-6 * ops, f"{seconds:.2f} s of processor time for {ops} ops"


@pytest.mark.parametrize("name", ["b26_scalar_constant_with_rank_three_sdy_sharding"])
def test_a_sharding_of_another_rank_is_refused(shared: Path, name: str) -> None:
    text = (shared / "corpus" / "bugs" / f"{name}.mlir").read_text()
    fault = fault_of(text)
    assert fault is not None
    assert "sharding must have rank 0, got: 3" in fault
