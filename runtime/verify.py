"""Does the partitioned program compute what the global program computes?

Both run on the same random inputs, and so does the global program in float64; `interp.compare` says
what equal means. Every device's tile of every result is compared. If that fails, both programs run
again with every value observed, and the first op whose value differs is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ..engine.plan import Compute, Reshard
from ..interp import run, run_spmd
from ..interp.compare import bounds, compare, not_finite
from ..interp.inputs import draw_inputs
from ..interp.numbers import is_float
from ..partir_dialect.errors import MismatchError, PartirError
from ..partir_dialect.mesh import Mesh
from ..partir_dialect.printer import print_module
from ..partir_dialect.reader import read_module
from ..passes.sharding_forms import has_shardings, normalise_shardings
from .border import Border, Edge, head, read_border
from .program import Program

if TYPE_CHECKING:
    from .partition import Partitioned, Prepared

Array = np.ndarray[Any, np.dtype[Any]]

BACKENDS = ("numpy", "xla")
LOOSE = 1e-3
"""When the first differing op is looked for: relative to the largest element of a value."""


@dataclass(frozen=True)
class Expected:
    """One result of the global program, in its own types and in float64, and the bound."""

    edge: Edge
    given: Array
    reference: Array
    bound: Array | None

    def differs(self, tile: Array, device: int, mesh: Mesh) -> str | None:
        """None if the tile of a device is what it should be, else where and how it differs."""
        index = self.edge.index(device, mesh)
        given, reference = self.given[index], self.reference[index]
        local = self.edge.placement.local_shape(self.edge.shape, mesh)
        if tile.shape != local or tile.dtype != given.dtype:
            return f"it is {tile.dtype}{list(tile.shape)}, wanted {given.dtype}{list(local)}"
        tile = head(tile, given.shape)
        bound = None if self.bound is None else self.bound[index]
        mismatch = compare(reference, given, tile, bound=bound)
        if mismatch is None:
            return None
        return f"its tile begins at {[s.start for s in index]}, {mismatch}"


# --- the check ----------------------------------------------------------------------------------


def verify_partitioned(
    result: Partitioned, *, backend: str = "numpy", seed: int = 0, rtol: float | None = None
) -> None:
    """Checks a partitioned program by the text that it prints. Raises `MismatchError`."""
    prepared = result.fresh()
    inputs = draw_inputs(prepared.source.module, seed)
    spmd = read_module(result.spmd_text, "<spmd>")
    fault = _compare(result.program, inputs, spmd, result.spmd_text, result.mesh, backend, rtol)
    if fault is not None:
        first = first_difference(result, prepared, inputs)
        raise MismatchError(fault + (f"; {first}" if first else ""))


def verify_spmd(
    program: Program,
    spmd: Program,
    mesh: Mesh,
    *,
    backend: str = "numpy",
    seed: int = 0,
    rtol: float | None = None,
) -> None:
    """Checks a device-local program that was written before. Raises `MismatchError`."""
    from .partition import prepare_program

    inputs = draw_inputs(prepare_program(program).source.module, seed)
    fault = _compare(program, inputs, spmd.module(), spmd.text, mesh, backend, rtol)
    if fault is not None:
        raise MismatchError(fault)


def _compare(
    program: Program,
    inputs: Sequence[Array],
    spmd: ModuleOp,
    text: str,
    mesh: Mesh,
    backend: str,
    rtol: float | None,
) -> str | None:
    """What differs first among the results, or None."""
    border = read_border(spmd, mesh)
    _check_border(border, program)
    expected = _expected(program, inputs, border, backend, rtol)
    local = border.scatter(inputs)
    if backend == "numpy":
        outputs = run_spmd(spmd, mesh, local)
    else:
        from .xla import run_on_xla

        outputs = run_on_xla(text, mesh, local)
    for k, want in enumerate(expected):
        for device in range(mesh.devices):
            fault = want.differs(outputs[device][k], device, border.mesh)
            if fault is not None:
                return f"result {want.edge.name!r} differs on device {device}: {fault}"
    return None


def _check_border(border: Border, program: Program) -> None:
    for edges, tensors in (
        (border.arguments, program.arguments),
        (border.results, program.results),
    ):
        if [edge.shape for edge in edges] != [tensor.shape for tensor in tensors]:
            raise PartirError(
                f"the device-local program is not one of {program.filename!r}: "
                f"it has {[list(edge.shape) for edge in edges]}"
            )


def _expected(
    program: Program,
    inputs: Sequence[Array],
    border: Border,
    backend: str,
    rtol: float | None,
) -> list[Expected]:
    """The global program's results; raises `MismatchError` where they are no numbers."""
    module = program.module()
    text = program.text
    if has_shardings(module):
        normalise_shardings(module, border.mesh, keep=False)
        text = print_module(module)
    reference = run(module, inputs, reference=True)
    if backend == "numpy" or "sdy.manual_computation" in text:  # which one device cannot run
        given = run(module, inputs)
    else:
        from .xla import run_on_xla

        (given,) = run_on_xla(text, Mesh(device=1), [list(inputs)])
    found: list[Expected] = []
    limits = bounds(reference, given, rtol)
    for edge, mine, exact, bound in zip(border.results, given, reference, limits, strict=True):
        if (at := not_finite(mine)) is not None:
            raise MismatchError(
                f"the global program gives {mine[at]} in result {edge.name!r} at {list(at)}"
            )
        found.append(Expected(edge, mine, exact, bound))
    return found


# --- where it begins ----------------------------------------------------------------------------


def first_difference(
    result: Partitioned, prepared: Prepared, inputs: Sequence[Array]
) -> str | None:
    """The first op, in the plan's order, of which a device has another value than the global
    program: its kind, location, device and index. None if no value differs by much."""
    mesh, plan, graph = result.session.state.mesh, result.plan, result.graph
    wanted = _observe_global(prepared, inputs)
    source = result.fresh().source
    lowered = result.lower(source)
    held: dict[SSAValue, dict[int, Array]] = {}

    def observe(device: int, value: SSAValue, array: Array) -> None:
        held.setdefault(value, {})[device] = array

    border = read_border(source.module, mesh)
    run_spmd(source.module, mesh, border.scatter(inputs), observe=observe)
    for step in plan.steps:
        if isinstance(step, Reshard) and step.move.halo is not None:
            continue  # a part of another tile
        for local in step.outputs if isinstance(step, Compute) else (step.target,):
            ssa, value = lowered.values[local], plan.values[local].value
            placement = plan.placement(local)
            if ssa is None or placement.pending or value not in wanted:
                continue
            edge = Edge("", graph.shapes[value], placement)
            for device, tile in sorted(held.get(ssa, {}).items()):
                want = wanted[value][edge.index(device, mesh)]
                at = _first_far(head(tile, want.shape), want)
                if at is not None:
                    kind = graph.kinds[step.op] if isinstance(step, Compute) else step.kind
                    place = graph.locations[graph.producer[value][0]] or "an unknown place"
                    return (
                        f"the first op that differs is {kind} at {place}, on device {device} "
                        f"at {list(at)}: {tile[at]}, globally {want[at]}"
                    )
    return None


def _observe_global(prepared: Prepared, inputs: Sequence[Array]) -> dict[int, Array]:
    """Every value of the global program by its number in the graph."""
    numbers = {ssa: number for number, ssa in prepared.source.values.items()}
    found: dict[int, Array] = {}

    def observe(value: SSAValue, array: Array) -> None:
        if value in numbers:
            found[numbers[value]] = array

    run(prepared.source.module, inputs, observe=observe)
    return found


def _first_far(tile: Array, want: Array) -> tuple[int, ...] | None:
    """The index of the element that is farthest from what is wanted, if any is far."""
    if tile.shape != want.shape:
        return (0,) * tile.ndim
    mismatch = compare(want, want, tile, rtol=LOOSE)
    return None if mismatch is None else mismatch.index


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is of floats (those of ml_dtypes included) or complex numbers."""
    return dtype.kind == "c" or is_float(dtype)
