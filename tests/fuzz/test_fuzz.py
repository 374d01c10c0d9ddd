"""A slice of the random programs with fixed seeds; `make fuzz N=20000` runs as many as wanted."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_PATH = Path(__file__).resolve().parent / "fuzz.py"
_spec = importlib.util.spec_from_file_location("fuzz", _PATH)
assert _spec is not None and _spec.loader is not None
fuzz = importlib.util.module_from_spec(_spec)
sys.modules["fuzz"] = fuzz
_spec.loader.exec_module(fuzz)


@pytest.mark.parametrize("first", range(0, 160, 20))
def test_random_programs_compute_the_same(first: int) -> None:
    for seed in range(first, first + 20):
        fuzz.check(fuzz.random_case(seed))


@pytest.mark.parametrize("seed", [100, 101, 111, 194, 320, 746, 1869, 2468, 6791])
def test_cases_that_failed_once(seed: int) -> None:
    """Gathers of equal tiles; uneven tiles of tiles; an axis refined further than a dimension."""
    fuzz.check(fuzz.random_case(seed))


def test_a_wrong_plan_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """With reductions left out of the text, cases fail, and the shrunk one is no larger."""
    to_stablehlo = fuzz.to_stablehlo

    def without_reductions(module: object) -> None:
        for op in list(module.walk()):
            if op.name == "partir.all_reduce":
                op.results[0].replace_all_uses_with(op.operands[0])
                op.detach()
                op.erase()
        to_stablehlo(module)

    monkeypatch.setattr(fuzz, "to_stablehlo", without_reductions)
    failing = next(c for c in map(fuzz.random_case, range(200)) if fuzz.failure(c) is not None)
    small = fuzz.shrink(failing, limit=60)
    assert fuzz.failure(small) is not None
    assert len(small.program.lines) <= len(failing.program.lines)
    assert len(small.actions) <= len(failing.actions)
