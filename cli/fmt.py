"""`partir fmt`: gives a script the one layout that all scripts have."""

from __future__ import annotations

import argparse
import sys

from .options import read_file
from .output import output_files

HELP = "format a script of tactics in place"
EXAMPLE = "partir fmt zero3.tactic"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "script", metavar="FILE.tactic", help="- formats standard input to standard output"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if the layout would change"
    )


def run(arguments: argparse.Namespace) -> int:
    from ..tactics.fmt import fmt

    path = arguments.script
    text = sys.stdin.read() if path == "-" else read_file(path)
    formatted = fmt(text, "<stdin>" if path == "-" else path)
    if arguments.check:
        if formatted != text:
            print(f"{path}: not formatted", file=sys.stderr)
            return 1
        return 0
    if path == "-":
        sys.stdout.write(formatted)
    elif formatted != text:
        with output_files(path) as (file,):
            assert file is not None
            file.write(formatted)
    return 0
