"""Every op that the interpreter has, against XLA or StableHLO's reference interpreter."""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from partir.interp import run
from partir.partir_dialect.reader import read_module

Array = np.ndarray[Any, np.dtype[Any]]
HERE = Path(__file__).resolve().parent


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"e2e_{name}", HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


cases = _load("interp_cases")
structures = _load("interp_structures")
legacy = _load("interp_legacy")
with np.errstate(all="ignore"):  # special values are cast to every type
    CASES = list(
        chain(
            cases.elementwise(),
            cases.conversions(),
            cases.choices(),
            structures.structures(cases.case, cases.numbers),
            legacy.legacy(cases.case, cases.numbers),
        )
    )


@pytest.fixture(scope="module")
def oracle() -> Iterator[Callable[[Any], list[Array]]]:
    """Asks the child process, which is started anew if an input has killed it."""
    child: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, str(HERE / "interp_child.py")]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(case: Any) -> list[Array]:
        if not child or child[-1].poll() is not None:
            child.append(start())
        stdin, stdout = child[-1].stdin, child[-1].stdout
        assert stdin is not None and stdout is not None
        pickle.dump((case.oracle, case.text, case.inputs), stdin)
        stdin.flush()
        answer = pickle.load(stdout)
        assert not isinstance(answer, str), f"the oracle fails: {answer}"
        return answer

    yield ask
    for process in child:
        process.communicate()


def assert_close(got: Array, want: Array, tolerance: float) -> None:
    """Equal dtypes, shapes and NaNs; finite values within `tolerance` of the largest element."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if got.dtype.kind in "biu" or "int" in got.dtype.name:
        np.testing.assert_array_equal(got.astype(object), want.astype(object))
        return
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore"):  # NaNs of narrow types
        a, b = got.astype(wide), want.astype(wide)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    x, y = np.where(finite, a, 0), np.where(finite, b, 0)
    bound = tolerance * np.maximum(np.abs(y), min(1.0, np.abs(y).max(initial=0.0)))
    wrong = ~same & ~(finite & (np.abs(x - y) <= bound))
    places = np.argwhere(wrong)[:5].tolist()
    assert not wrong.any(), f"{got[wrong][:5]} != {want[wrong][:5]} at {places}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_interpreter_agrees_with_the_oracle(
    case: Any, oracle: Callable[[Any], list[Array]]
) -> None:
    want = oracle(case)
    got = run(read_module(case.text, case.name), case.inputs)
    assert len(got) == len(want)
    for mine, other in zip(got, want, strict=True):
        assert_close(mine, other, case.tolerance)


def test_case_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
