"""`partir diff`: what changes between two scripts on one program."""

from __future__ import annotations

import argparse

from .options import add_device, add_mesh, add_program, parse_mesh, read_program

HELP = "show what changes between two scripts on one program"
EXAMPLE = "partir diff a.tactic b.tactic step.mlir --mesh batch=4,model=2"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="A.tactic")
    parser.add_argument("second", metavar="B.tactic")
    add_program(parser)
    add_mesh(parser)
    add_device(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..runtime.partition import partition
    from .tables import comparison, console

    mesh, program = parse_mesh(arguments.mesh), read_program(arguments.program)
    reports = [
        partition(program, mesh, path, device=arguments.device, expectations=False).report
        for path in (arguments.first, arguments.second)
    ]
    names = (arguments.first, arguments.second)
    console().print(comparison(reports[0], reports[1], names))
    return 0
