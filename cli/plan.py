"""`partir plan`: pipeline stages, degrees, recomputation (not in this version)."""

from __future__ import annotations

import argparse

from .absent import configure, refuse

__all__ = ["EXAMPLE", "HELP", "configure", "run"]

HELP = (
    "plan pipeline stages, degrees and recomputation with Piper's algorithm (not in this version)"
)
EXAMPLE = "partir plan layers.json --devices 64"


def run(arguments: argparse.Namespace) -> int:
    return refuse(arguments.command)
