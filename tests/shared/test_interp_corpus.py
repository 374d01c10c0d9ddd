"""StableHLO's own interpreter tests and JAX's test data, which check their results themselves."""

# ruff: noqa: E501

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from partir.interp import run
from partir.interp.attributes import find, values
from partir.interp.compiler import Context
from partir.interp.registry import CUSTOM_CALLS, KERNELS, Kernel
from partir.partir_dialect.errors import PartirError
from partir.partir_dialect.reader import read_module

Array = np.ndarray[Any, np.dtype[Any]]

# ------------------------------------------------------------------------- checks as ops


def _wide(a: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


def _equal(a: Array, b: Array) -> None:
    if a.dtype.kind in "fcV" and "int" not in a.dtype.name:
        np.testing.assert_array_equal(_wide(a), _wide(b))
    else:
        np.testing.assert_array_equal(a.astype(object), b.astype(object))


def _almost(a: Array, b: Array) -> None:
    if a.dtype.kind not in "fcV" or "int" in a.dtype.name:
        return _equal(a, b)
    eps = {1: 0.13, 2: 1e-2}.get(a.dtype.itemsize, 1e-4)
    want = _wide(b)
    scale = np.abs(want[np.isfinite(want)]).max(initial=0.0)
    np.testing.assert_allclose(_wide(a), want, rtol=eps, atol=eps * float(scale))
    return None


def _pair(check: Callable[[Array, Array], None]) -> Callable[[Operation, Context], Kernel]:
    def build(op: Operation, context: Context) -> Kernel:
        def kernel(a: Array, b: Array) -> tuple[()]:
            check(a, b)
            return ()

        return kernel

    return build


def _constant(check: Callable[[Array, Array], None]) -> Callable[[Operation, Context], Kernel]:
    def build(op: Operation, context: Context) -> Kernel:
        want = values(find(op, "value"))

        def kernel(a: Array) -> tuple[()]:
            check(a, want)
            return ()

        return kernel

    return build


CHECKS = {
    "check.expect_eq": _pair(_equal),
    "check.expect_almost_eq": _pair(_almost),
    "check.expect_close": _pair(_almost),
    "check.expect_eq_const": _constant(_equal),
    "check.expect_almost_eq_const": _constant(_almost),
}


@pytest.fixture(autouse=True)
def checks() -> Iterator[None]:
    """Gives the ops and calls of the `check` dialect a meaning for the time of a test."""
    calls = {name: CHECKS[name] for name in CHECKS if not name.endswith("const")}
    KERNELS.update(CHECKS)
    CUSTOM_CALLS.update(calls)
    yield
    for name in CHECKS:
        del KERNELS[name]
    for name in calls:
        del CUSTOM_CALLS[name]


_TENSOR = r"tensor<(?:[^<>]|<[^<>]*>)*>"
_CONST = re.compile(
    rf"(?<![@\"])check\.(expect_\w*eq_const)\s*\(?\s*(%[\w#]+),\s*(dense<.*?>)\s*:\s*({_TENSOR})\s*\)?(?:\s*:\s*{_TENSOR})?",
    re.S,
)
_PAIR = re.compile(
    rf"(?<![@\"])check\.(expect_\w+)\s*\(?\s*(%[\w#]+),\s*(%[\w#]+)[^:\n]*:\s*\(?({_TENSOR})(?:, {_TENSOR}\)?)?"
)


def generic(text: str) -> str:
    """The pretty checks in generic form, IREE's constants as StableHLO's."""
    text = text.replace("util.unfoldable_constant", "stablehlo.constant")
    text = _CONST.sub(
        lambda m: f'"check.{m[1]}"({m[2]}) {{value = {m[3]} : {m[4]}}} : ({m[4]}) -> ()', text
    )
    return _PAIR.sub(lambda m: f'"check.{m[1]}"({m[2]}, {m[3]}) : ({m[4]}, {m[4]}) -> ()', text)


# ------------------------------------------------------------------------- files

# Files that must be refused, and a part of the error that says why.
REFUSED = {
    "infeed.mlir": "communication with the host",
    "outfeed.mlir": "communication with the host",
    "collective_reduce.mlir": "unknown op",
    "check.mlir": "expected",  # tests of the checks themselves
    "printing.mlir": "interpreter.print",
    "collective_broadcast.mlir": "a root that is an operand is not supported",
}


def corpus(shared: Path, kind: str) -> list[Path]:
    with (shared / "corpus" / "index.csv").open() as file:
        rows = [row["file"] for row in csv.DictReader(file) if row["kind"] == kind]
    return [shared / "corpus" / row for row in rows]


def functions(text: str, name: str) -> Iterator[tuple[ModuleOp, str]]:
    """Every function without arguments of every part of a file; only `main` where there is one."""
    for part in re.split(r"^// -----.*$", text, flags=re.M):
        if "func" not in part:
            continue
        module = read_module(generic(part), name)
        funcs = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
        names = [f.sym_name.data for f in funcs if not len(f.function_type.inputs)]
        for function in ["main"] if "main" in names else names:
            yield module, function


def run_file(path: Path) -> int:
    """Runs all that a file can run and says how many functions that were."""
    count = 0
    for module, function in functions(path.read_text(), path.name):
        run(module, [], function=function)
        count += 1
    return count


def test_stablehlo_interpreter_tests(shared: Path) -> None:
    files = corpus(shared, "interpreter-oracle")
    assert len(files) == 101
    count = 0
    for path in files:
        if path.name in REFUSED:
            with pytest.raises(PartirError, match=REFUSED[path.name]):
                run_file(path)
        else:
            with add_file(path):
                count += run_file(path)
    assert count > 300


@pytest.mark.parametrize("part", range(4))
def test_data_from_jax(shared: Path, part: int) -> None:
    files = corpus(shared, "testdata-oracle")
    assert len(files) == 484
    for path in files[part::4]:
        with add_file(path):
            assert run_file(path) == 1


# IREE's dialects, its numbering of random counters, branches between blocks, assertions that it drops.
FOREIGN = re.compile(
    r"flow\.|ml_program\.|util\.global|linalg\.|rng_bit_generator|cf\.br|stablehlo\.rng|@shape_assertion"
)


def test_iree_op_tests(shared: Path) -> None:
    files = [
        path for path in corpus(shared, "iree-op-oracle") if not FOREIGN.search(path.read_text())
    ]
    count = 0
    for path in files:
        with add_file(path):
            count += run_file(path)
    assert len(files) > 35 and count > 90


@contextmanager
def add_file(path: Path) -> Iterator[None]:
    """Names the file in an error."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in {path.name}")
        raise
