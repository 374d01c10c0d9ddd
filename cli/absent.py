"""What does a command say that this version does not have yet?"""

from __future__ import annotations

import argparse

from ..partir_dialect.errors import PartirError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares nothing: whatever is given is taken."""
    del parser


def run(arguments: argparse.Namespace) -> int:
    """Refuses."""
    raise PartirError(f"this version of partir does not have the command: {arguments.command!r}")
