"""Small programs through the engine, the lowering and the simulator: what the unit tests share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from partir.engine.build import Source, build, main_of
from partir.engine.check import check_plan
from partir.engine.graph import Graph, pair
from partir.engine.plan import Plan
from partir.engine.roles import donations, find_roles
from partir.engine.session import Session
from partir.interp import run, run_spmd
from partir.partir_dialect.dtypes import numpy_dtype
from partir.partir_dialect.mesh import Mesh
from partir.partir_dialect.reader import read_module
from partir.passes.check_spmd import check_spmd
from partir.passes.lower_to_spmd import lower_to_spmd
from partir.passes.prepare import prepare
from partir.passes.to_stablehlo import to_stablehlo

Array = np.ndarray[Any, np.dtype[Any]]


def tile_of(array: Array, dims: Sequence[Sequence[str]], device: int, mesh: Mesh) -> Array:
    """The part of a global array that a device holds; the last tiles may be short."""
    for d, axes in enumerate(dims):
        tiles = int(np.prod([mesh.size(axis) for axis in axes], dtype=int))
        size = -(-array.shape[d] // tiles)
        start = mesh.index(device, tuple(axes)) * size
        array = np.take(array, range(start, max(start, min(start + size, array.shape[d]))), axis=d)
    return array


def padded(tile: Array, shape: Sequence[int]) -> Array:
    """The tile in its local shape, with rubbish beyond its end that must not be seen."""
    whole = np.full(shape, np.nan if tile.dtype.kind in "fV" else 3, tile.dtype)
    whole[tuple(slice(0, size) for size in tile.shape)] = tile
    return whole


@dataclass
class Case:
    """One program on one mesh. `tile` and friends take argument names or SSA names."""

    text: str
    mesh: Mesh
    prepared: bool = True
    graph: Graph = field(init=False)
    source: Source = field(init=False)
    session: Session = field(init=False)

    def __post_init__(self) -> None:
        module = read_module(self.text)
        if self.prepared:
            prepare(module)
        self.graph, self.source = build(module)
        roles = find_roles(self.graph, donations(main_of(module)))
        pair(self.graph, dict(roles.pairs))
        self.session = Session(self.graph, self.mesh)

    def value(self, name: str) -> int:
        for argument in self.graph.arguments:
            if argument.name == name:
                return argument.value
        return next(v for v, ssa in self.source.values.items() if ssa.name_hint == name)

    def step(self, *tiles: tuple[str, int, str]) -> list[str]:
        """One tactic of raw tiles, then propagation; the status of each tile."""
        self.session.begin("test")
        statuses = [self.session.tile(self.value(n), d, axis).status for n, d, axis in tiles]
        self.session.propagate()
        return statuses

    def dims(self, name: str) -> tuple[tuple[str, ...], ...]:
        return self.session.placement(self.value(name)).dims

    def counts(self) -> dict[str, int]:
        """Collectives by kind, those that occur."""
        counts = self.session.plan().counts()
        return {kind: row["count"] for kind, row in counts.items() if row["count"]}

    def verify(self, seed: int = 0, rtol: float = 1e-4, on: Callable[..., Any] = run_spmd) -> Plan:
        """Lowers, checks and simulates; asserts that every device has its part of the result.

        `on(module, mesh, inputs)` runs the device-local program: the simulator, or XLA.
        """
        plan = self.session.plan()
        check_plan(plan)
        mesh = self.session.state.mesh
        inputs = self.inputs(seed)
        expected = run(read_module(self.text), inputs)
        module = self.source.module
        lower_to_spmd(self.source, plan, mesh)
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
        outputs = on(module, mesh, local)
        for r, v in enumerate(plan.results):
            for device in range(mesh.devices):
                wanted = tile_of(expected[r], plan.placement(v).dims, device, mesh)
                valid = tuple(slice(0, size) for size in wanted.shape)
                np.testing.assert_allclose(
                    outputs[device][r][valid].astype(np.float64),
                    wanted.astype(np.float64),
                    rtol=rtol,
                    atol=rtol,
                    err_msg=f"result {r} on device {device}",
                )
        return plan

    def inputs(self, seed: int) -> list[Array]:
        generator = np.random.default_rng(seed)
        found: list[Array] = []
        for argument in self.source.function.body.block.args:
            shape = argument.type.get_shape()
            dtype = numpy_dtype(argument.type.element_type)
            if dtype.kind in "iu":
                found.append(generator.integers(0, 4, shape).astype(dtype))
            else:
                found.append(np.asarray(generator.standard_normal(shape)).astype(dtype))
        return found


@pytest.fixture(scope="session")
def case() -> Callable[..., Case]:
    """`case(text, batch=4, model=2)`: a program on a mesh, ready for tiles."""

    def make(text: str, *, prepared: bool = True, **mesh: int) -> Case:
        return Case(text, Mesh(**mesh), prepared)

    return make
