"""Every op kind of the real programs: prepared without a change of numbers, to loops and back."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from partir.interp import run
from partir.interp.inputs import draw_inputs
from partir.partir_dialect.mesh import Mesh
from partir.partir_dialect.partir_attributes import MeshAttr, NestAttr, NestEntry
from partir.partir_dialect.partir_types import MESH, NEST
from partir.partir_dialect.printer import print_module
from partir.partir_dialect.reader import read_module
from partir.partir_dialect.rules import Kind, rule_of
from partir.passes.generated import is_generated
from partir.passes.iterations import Rests, choose_form
from partir.passes.loops import loops
from partir.passes.nest_form import add_empty_nests, placed_blocks
from partir.passes.nests import nests
from partir.passes.prepare import prepare

Array = np.ndarray[Any, np.dtype[Any]]

MESH_4X2 = Mesh(batch=4, model=2)
LARGE = {"t_train_L32", "t5b_train", "t_train_L4", "t_train_L2_gather", "unet_train"}
SMALL = 400  # ops: programs that are run, whole and in loops


SHARED = Path(
    os.environ.get("PARTIR_SHARED", Path(__file__).resolve().parents[2].parent / "shared")
)
PROGRAMS = sorted(
    path.name.removesuffix(".generic.mlir")
    for path in (SHARED / "programs").glob("*.generic.mlir")
    if path.name.removesuffix(".generic.mlir") not in LARGE
)


def load(name: str) -> ModuleOp:
    path = SHARED / "programs" / f"{name}.mlir"
    return read_module(path.read_text(encoding="utf-8"), str(path))


def is_small(module: ModuleOp) -> bool:
    return sum(1 for _ in module.walk()) <= SMALL


def draw_nests(module: ModuleOp, mesh: Mesh, seed: int) -> Counter[str]:
    """Gives most ops a nest over both axes that loops can say; the kinds that got a factor."""
    rng = random.Random(seed)
    module.attributes[MESH] = MeshAttr(mesh)
    add_empty_nests(module)
    kinds: Counter[str] = Counter()
    for op in [op for _, ops in placed_blocks(module) for op in ops]:
        rule = rule_of(op)
        rests = Rests(rule)
        usable = [f for f, factor in enumerate(rule.factors) if factor.kind is not Kind.BLOCKED]
        nest: list[NestEntry] = []
        for axis in rng.sample(mesh.names, len(mesh.names)):
            if not usable or rng.random() < 0.2:
                continue
            factor, parts = rng.choice(usable), mesh.size(axis)
            form = choose_form(op, rule, factor, rests, parts)
            if form is not None:
                rests.take(form, factor, parts)
                nest.append(NestEntry(axis, factor))
                kinds[op.name] += 1
        op.attributes[NEST] = NestAttr(nest)
    return kinds


def assert_close(given: Sequence[Array], wanted: Sequence[Array]) -> None:
    """Sums may come in another order; everything else is the same."""
    for actual, expected in zip(given, wanted, strict=True):
        assert actual.dtype == expected.dtype
        if expected.dtype.kind in "iub":
            np.testing.assert_array_equal(actual, expected)
            continue
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        values = expected.astype(wide)
        scale = float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))
        precise = expected.dtype.itemsize >= 4
        tolerance = scale * (1e-4 if precise else 3e-2)
        np.testing.assert_allclose(actual.astype(wide), values, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", PROGRAMS)
def test_prepare_keeps_the_numbers(name: str) -> None:
    module = load(name)
    small = is_small(module)
    arrays = draw_inputs(module) if small else []
    with np.errstate(all="ignore"):
        wanted = run(module, arrays) if small else []
    prepare(module)
    module.verify()
    assert all(op.name not in ("func.call", "stablehlo.composite") for op in module.walk())
    assert sum(isinstance(op, FuncOp) for op in module.walk()) == 1
    for op in module.walk():
        assert not is_generated(op) or op.results[0].has_one_use()
    if small:
        with np.errstate(all="ignore"):
            for given, expected in zip(run(module, arrays), wanted, strict=True):
                np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_there_and_back(name: str) -> None:
    module = load(name)
    prepare(module)
    small = is_small(module)
    whole = module.clone()
    draw_nests(module, MESH_4X2, seed=len(name))
    before = print_module(module)
    loops(module)
    module.verify()
    if small:
        arrays = draw_inputs(whole)
        with np.errstate(all="ignore"):
            assert_close(run(module, arrays), run(whole, arrays))
    nests(module)
    assert print_module(module) == before


def test_most_op_kinds_are_looped() -> None:
    kinds: Counter[str] = Counter()
    for name in PROGRAMS:
        module = load(name)
        if is_small(module):
            prepare(module)
            kinds += draw_nests(module, MESH_4X2, seed=len(name))
    assert len(kinds) >= 60, sorted(kinds)
