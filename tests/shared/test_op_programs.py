"""Every single-op program, with each argument tiled on each dimension along axes of two and four.

Everything is simulated on all devices, with padding that is NaN, and compared with the global run.
The programs have the combinations of ops that JAX makes, gradients included.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from partir.engine.build import build, main_of
from partir.engine.check import check_plan
from partir.engine.graph import pair
from partir.engine.roles import donations, find_roles
from partir.engine.session import Session
from partir.interp import run, run_spmd
from partir.interp.inputs import draw_inputs
from partir.interp.numbers import is_integer
from partir.partir_dialect.mesh import Mesh
from partir.partir_dialect.reader import read_module
from partir.passes.check_spmd import check_spmd
from partir.passes.lower_to_spmd import lower_to_spmd
from partir.passes.prepare import prepare
from partir.passes.to_stablehlo import to_stablehlo

PROGRAMS = Path(os.environ.get("PARTIR_SHARED", "../shared")) / "programs"
NAMES = sorted(path.name for path in PROGRAMS.glob("op_*.mlir") if "generic" not in path.name)


def tile_of(
    array: np.ndarray, dims: Sequence[Sequence[str]], device: int, mesh: Mesh
) -> np.ndarray:
    """The part of a global array that a device holds; the last tiles may be short."""
    for d, axes in enumerate(dims):
        if axes:
            tiles = int(np.prod([mesh.size(axis) for axis in axes]))
            size = -(-array.shape[d] // tiles)
            start = mesh.index(device, tuple(axes)) * size
            array = np.take(array, range(start, min(start + size, array.shape[d])), axis=d)
    return array


def padded(tile: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The tile in its local shape, with rubbish beyond its end that must not be seen."""
    rubbish = 3 if is_integer(tile.dtype) or tile.dtype == bool else np.nan
    whole = np.full(shape, rubbish, tile.dtype)
    whole[tuple(slice(0, size) for size in tile.shape)] = tile
    return whole


def compare(got: np.ndarray, wanted: np.ndarray, what: str) -> None:
    """Floats to the accuracy of sums in another order, by their type; all else exactly."""
    if is_integer(wanted.dtype) or wanted.dtype == bool:
        np.testing.assert_array_equal(got, wanted, err_msg=what)
        return
    if wanted.dtype.kind == "c":
        compare(np.real(got), np.real(wanted), what)
        compare(np.imag(got), np.imag(wanted), what)
        return
    got, exact = got.astype(np.float64), wanted.astype(np.float64)
    finite = np.abs(exact[np.isfinite(exact)])
    rough = wanted.dtype.itemsize < 4
    tolerance = (0.05 if rough else 1e-4) * (1 + finite.max(initial=0.0))
    np.testing.assert_allclose(got, exact, rtol=0, atol=tolerance, err_msg=what)


def attempt(text: str, name: str, dim: int, mesh: Mesh, inputs: list[np.ndarray]) -> bool:
    """Tiles one dimension of one argument and compares; says whether it could be tiled."""
    module = read_module(text)
    prepare(module)
    graph, source = build(module)
    pair(graph, dict(find_roles(graph, donations(main_of(module))).pairs))
    session = Session(graph, mesh)
    session.begin("tile")
    if not session.tile(graph.argument(name).value, dim, "a").done:
        return False
    session.propagate()
    plan, mesh = session.plan(), session.state.mesh
    check_plan(plan)
    lower_to_spmd(source, plan, mesh)
    module.verify()
    check_spmd(module)
    to_stablehlo(module)
    module.verify()
    local = [
        [
            padded(tile_of(x, plan.placement(v).dims, device, mesh), plan.values[v].shape)
            for x, v in zip(inputs, plan.arguments, strict=True)
        ]
        for device in range(mesh.devices)
    ]
    outputs = run_spmd(module, mesh, local)
    for r, (v, whole) in enumerate(zip(plan.results, run(read_module(text), inputs), strict=True)):
        for device in range(mesh.devices):
            wanted = tile_of(whole, plan.placement(v).dims, device, mesh)
            valid = tuple(slice(0, size) for size in wanted.shape)
            compare(outputs[device][r][valid], wanted, f"{name} {dim} {mesh}: result {r}")
    return True


@pytest.mark.parametrize("name", NAMES)
def test_every_dimension_of_every_argument(name: str) -> None:
    text = (PROGRAMS / name).read_text()
    module = read_module(text)
    inputs = draw_inputs(module)
    prepare(module)
    graph, _ = build(module)
    tiled = 0
    for size in (2, 4):
        for argument in graph.arguments:
            for dim in range(len(graph.shapes[argument.value])):
                tiled += attempt(text, argument.name, dim, Mesh(a=size), inputs)
    assert tiled
