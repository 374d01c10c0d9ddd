"""`partir run`: runs the partitioned program on XLA devices through JAX and times its steps."""

from __future__ import annotations

import argparse

from ..partir_dialect.errors import PartirError
from .options import add_mesh, add_program, add_tactics, parse_mesh, read_program, script

HELP = "run the partitioned program on XLA devices through JAX, and time its steps"
EXAMPLE = "partir run step.mlir --mesh batch=4,model=2 --tactics zero3.tactic --devices cpu:8"


def configure(parser: argparse.ArgumentParser) -> None:
    add_program(parser)
    add_mesh(parser)
    add_tactics(parser)
    parser.add_argument(
        "--devices",
        default="cpu",
        metavar="KIND:COUNT",
        help="which devices to run on (default: as many of the CPU's as the mesh has)",
    )
    parser.add_argument("--steps", type=int, default=3, metavar="N", help="default: 3")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random inputs")


def run(arguments: argparse.Namespace) -> int:
    from ..runtime.execute import time_steps
    from ..runtime.partition import partition

    kind, count = parse_devices(arguments.devices)
    if arguments.steps < 1:
        raise PartirError(f"at least one step is needed, got: {arguments.steps}")
    mesh = parse_mesh(arguments.mesh)
    tactics = script(arguments)
    result = partition(read_program(arguments.program), mesh, tactics)
    if count is not None and count < result.mesh.devices:
        raise PartirError(
            f"the mesh {result.mesh} needs {result.mesh.devices} devices, got: {count}"
        )
    timing = time_steps(result, steps=arguments.steps, platform=kind, seed=arguments.seed)
    from .tables import duration

    print(f"compiled in {duration(timing.compile_seconds)}")
    for number, seconds in enumerate(timing.step_seconds, 1):
        print(f"step {number}: {duration(seconds)}")
    print(f"best: {duration(min(timing.step_seconds))} on {result.mesh.devices} {kind} devices")
    return 0


def parse_devices(text: str) -> tuple[str, int | None]:
    """Reads `cpu:8` or `cpu`; raises `PartirError`."""
    kind, colon, count = text.partition(":")
    if not kind or (colon and not (count.isdecimal() and int(count) > 0)):
        raise PartirError(f"devices are written KIND or KIND:COUNT, got: {text!r}")
    return kind, int(count) if colon else None
