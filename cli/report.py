"""`partir report`: compares two JSON reports, made by `partir partition --report`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..partir_dialect.errors import PartirError
from .options import read_file

HELP = "compare two JSON reports"
EXAMPLE = "partir report a.json b.json"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="A.json")
    parser.add_argument("second", metavar="B.json")


def run(arguments: argparse.Namespace) -> int:
    from .tables import comparison, console

    first, second = read_report(arguments.first), read_report(arguments.second)
    console().print(comparison(first, second, (arguments.first, arguments.second)))
    return 0


def read_report(path: str) -> dict[str, Any]:
    """A report as `--report` writes it; raises `PartirError` if it is none."""
    try:
        report: dict[str, Any] = json.loads(read_file(path))
    except json.JSONDecodeError as error:
        raise PartirError(f"no JSON: {path!r}: {error}") from error
    try:
        report["steps"][-1]["collectives"]
    except (TypeError, KeyError, IndexError) as error:
        raise PartirError(f"no report of partir: {path!r}") from error
    return report
