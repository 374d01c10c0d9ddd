"""`partir explain`: why values are placed as they are, and where each collective comes from."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .options import add_mesh, add_program, add_tactics, parse_mesh, read_program, script

if TYPE_CHECKING:
    from ..runtime.explain import CollectiveStory, Explainer

HELP = "say where each placement and each collective comes from, and what it costs"
EXAMPLE = (
    "partir explain step.mlir --mesh batch=4,model=2 --tactics zero3.tactic --value 'params/*/wo'"
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_program(parser)
    add_mesh(parser)
    add_tactics(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--value", metavar="NAME", help="an argument or a result, or a pattern")
    which.add_argument("--collectives", action="store_true", help="every collective (default)")
    which.add_argument("--conflicts", action="store_true", help="ops that could be tiled two ways")
    which.add_argument(
        "--fallbacks",
        action="store_true",
        help="operands gathered because their op cannot be tiled",
    )


def run(arguments: argparse.Namespace) -> int:
    from ..runtime.explain import Explainer
    from ..runtime.partition import partition

    mesh = parse_mesh(arguments.mesh)
    tactics = script(arguments)
    program = read_program(arguments.program)
    explainer = Explainer(partition(program, mesh, tactics, expectations=False))
    if arguments.value is not None:
        _values(explainer, arguments.value)
    elif arguments.conflicts:
        _conflicts(explainer)
    elif arguments.fallbacks:
        _fallbacks(explainer)
    else:
        _collectives(explainer)
    return 0


def _values(explainer: Explainer, pattern: str) -> None:
    for story in explainer.named(pattern):
        print(f"{story.name}: {story.dtype}{list(story.shape)}, on a device {list(story.local)}")
        for axis in story.axes:
            print(f"  {axis.axis}: {axis.what}: {axis.because}")
        for collective in story.collectives:
            _collective(collective, "  ")


def _collectives(explainer: Explainer) -> None:
    stories = explainer.collectives()
    for story in stories:
        _collective(story, "")
    print(f"{len(stories)} collectives" if stories else "no collectives")


def _collective(story: CollectiveStory, indent: str) -> None:
    from .tables import amount

    times = f" x{story.count}" if story.count != 1 else ""
    axes = ",".join(story.axes)
    print(f"{indent}{story.kind}({axes}){times} of {story.value}: {amount(story.bytes)}")
    print(f"{indent}  from {story.before} to {story.after}")
    print(f"{indent}  for {'; '.join(story.uses) or 'a result'}")
    why = " (its op cannot be tiled there)" if story.fallback else ""
    print(f"{indent}  because of {story.because}{why}")


def _conflicts(explainer: Explainer) -> None:
    stories = explainer.conflicts()
    for story in stories:
        print(f"{story.axis} could tile {story.op} in {len(story.sides)} ways:")
        for side in story.sides:
            print(f"  as wanted by {side}")
        print("  a tactic before it that tiles or replicates one of these decides it")
    print(f"{len(stories)} conflicts" if stories else "no conflicts")


def _fallbacks(explainer: Explainer) -> None:
    from .tables import amount

    stories = explainer.fallbacks()
    for story in stories:
        print(f"{story.operand} is gathered along {story.axis}: {amount(story.bytes)}")
        print(f"  for {story.op}, which cannot be tiled there")
    print(f"{len(stories)} fallbacks" if stories else "no fallbacks")
