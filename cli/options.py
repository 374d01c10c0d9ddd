"""Which options do several commands share, and how are their values read?"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ..partir_dialect.errors import PartirError

if TYPE_CHECKING:
    from ..partir_dialect.mesh import Mesh
    from ..runtime.program import Program
    from ..tactics import Script

PROGRAM_HELP = "StableHLO as .mlir text or MLIR bytecode; - reads standard input"


def add_program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", metavar="PROGRAM", help=PROGRAM_HELP)


def add_mesh(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mesh",
        metavar="NAME=SIZE,…",
        help="device axes, major to minor; default: the mesh that the script or "
        "the program (sdy.mesh) names",
    )


def add_tactics(parser: argparse.ArgumentParser) -> None:
    """`--tactics FILE` and `--tactic TEXT`, in the order in which they are given."""
    parser.add_argument(
        "--tactics",
        metavar="FILE",
        dest="scripts",
        type=lambda value: ("file", value),
        action="append",
        default=[],
        help="a script of tactics",
    )
    parser.add_argument(
        "--tactic",
        metavar="TEXT",
        dest="scripts",
        type=lambda value: ("text", value),
        action="append",
        default=[],
        help="a statement or several, as they stand in a script; may be repeated",
    )
    parser.add_argument(
        "--strict", action="store_true", help="a tactic that changes nothing is an error"
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", metavar="NAME", help="the device model of the estimates (default: cpu)"
    )


def script(arguments: argparse.Namespace) -> Script:
    """The script that `--tactics` and `--tactic` make together. Raises `TacticError`."""
    from ..tactics import Script, load, parse

    whole: Script | None = None
    for number, (kind, value) in enumerate(arguments.scripts, 1):
        part = load(value) if kind == "file" else parse(value, f"<tactic {number}>")
        whole = part if whole is None else whole + part
    return whole or Script(())


def read_program(path: str) -> Program:
    """Reads PROGRAM as a command line gives it; raises `PartirError`."""
    from ..runtime.program import read, read_text

    if path == "-":
        return read_text(sys.stdin.buffer.read(), "<stdin>")
    return read(path)


def read_file(path: str) -> str:
    """The text of a file that the user named; raises `PartirError`."""
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except OSError as error:
        raise PartirError(f"cannot read: {path!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PartirError(f"no UTF-8 text: {path!r}: {error.reason}") from error


def parse_mesh(text: str | None) -> Mesh | None:
    """Reads `batch=4,model=2`; raises `MeshError`."""
    from ..partir_dialect.mesh import Mesh

    return None if text is None else Mesh.parse(text)
