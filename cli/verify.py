"""`partir verify`: shows that the partitioned program computes what the global one does."""

from __future__ import annotations

import argparse

from ..partir_dialect.errors import MeshError
from .options import add_mesh, add_program, add_tactics, parse_mesh, read_program, script

HELP = "run the global and the partitioned program on the same random inputs and compare"
EXAMPLE = "partir verify step.mlir --tactics zero3.tactic --mesh batch=4,model=2"


def configure(parser: argparse.ArgumentParser) -> None:
    add_program(parser)
    parser.add_argument(
        "spmd", metavar="SPMD.mlir", nargs="?", help="a device-local program, in place of a script"
    )
    add_mesh(parser)
    add_tactics(parser)
    parser.add_argument("--backend", choices=("numpy", "xla"), default="numpy")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random inputs")
    parser.add_argument(
        "--rtol",
        type=float,
        metavar="X",
        help="tolerance relative to the largest element of a result",
    )


def run(arguments: argparse.Namespace) -> int:
    mesh = parse_mesh(arguments.mesh)
    options = {"backend": arguments.backend, "seed": arguments.seed, "rtol": arguments.rtol}
    if arguments.spmd is not None:
        from ..runtime.verify import verify_spmd

        if mesh is None:
            raise MeshError("which mesh? a device-local program needs --mesh")
        program, spmd = read_program(arguments.program), read_program(arguments.spmd)
        verify_spmd(program, spmd, mesh, **options)
    else:
        from ..runtime.partition import partition

        tactics = script(arguments)
        partition(read_program(arguments.program), mesh, tactics).verify(**options)
    print("equal")
    return 0
