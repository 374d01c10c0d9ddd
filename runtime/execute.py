"""How long does a step of the partitioned program take on real devices?"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..interp.inputs import draw_inputs
from ..partir_dialect.reader import read_module
from .border import read_border
from .xla import Executable

if TYPE_CHECKING:
    from .partition import Partitioned


@dataclass(frozen=True)
class Timing:
    """Seconds: compiling, and each step, arrays staying on their devices in between."""

    compile_seconds: float
    step_seconds: tuple[float, ...]


def time_steps(
    result: Partitioned, *, steps: int = 3, platform: str = "cpu", seed: int = 0
) -> Timing:
    """Runs `steps` steps on random inputs; each takes over the results that alias its arguments.

    Raises `PartirError` where JAX is missing or has too few devices.
    """
    mesh = result.mesh
    executable = Executable(result.spmd_text, mesh.devices, platform)
    inputs = draw_inputs(result.fresh().source.module, seed)
    border = read_border(read_module(result.spmd_text, "<spmd>"), mesh)
    arrays: list[Any] = executable.put(border.scatter(inputs))
    seconds: list[float] = []
    for _ in range(steps):
        start = time.perf_counter()
        outputs = executable.call(arrays)
        seconds.append(time.perf_counter() - start)
        for argument, outcome in result.roles.pairs.items():
            arrays[argument] = outputs[outcome]
    return Timing(executable.compile_seconds, tuple(seconds))
