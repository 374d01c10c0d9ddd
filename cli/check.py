"""`partir check`: says whether a script is right, with a program also whether its names exist."""

from __future__ import annotations

import argparse

from .options import add_mesh, parse_mesh, read_program

HELP = "check a script of tactics, and with a program its names too"
EXAMPLE = "partir check zero3.tactic step.mlir"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", metavar="FILE.tactic")
    parser.add_argument("program", metavar="PROGRAM", nargs="?")
    add_mesh(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..cost.device import device_names
    from ..tactics import check, load
    from ..tactics.world import World

    script = load(arguments.script)
    mesh = parse_mesh(arguments.mesh)
    world = None
    if arguments.program is not None:
        from ..engine.session import Session
        from ..runtime.partition import mesh_of, prepare_program

        prepared = prepare_program(read_program(arguments.program))
        world = World(Session(prepared.graph, mesh or mesh_of(script)), prepared.roles)
    checked = check(script, mesh=mesh, world=world, devices=device_names())
    print(f"{arguments.script}: good")
    for line in script.doc.splitlines():
        print(f"  {line}")
    for signature, doc in checked.documented:
        print(f"  {signature}" + (f": {doc.splitlines()[0]}" if doc else ""))
    return 0
