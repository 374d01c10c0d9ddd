"""What does a command say that this version does not have yet?"""

from __future__ import annotations

import argparse

from ..partir_dialect.errors import PartirError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def refuse(command: str) -> int:
    raise PartirError(f"this version of partir does not have the command: {command!r}")
