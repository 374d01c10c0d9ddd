"""`partir partition`: applies a script to a program, shows the costs, writes the result."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from ..partir_dialect.errors import PartirError
from .options import (
    add_device,
    add_mesh,
    add_program,
    add_tactics,
    parse_mesh,
    read_program,
    script,
)
from .output import STANDARD, OutputFile, output_files

if TYPE_CHECKING:
    from ..runtime.partition import Partitioned

HELP = "apply tactics to a program and write the program that every device runs"
EXAMPLE = (
    "partir partition step.mlir --mesh batch=4,model=2 --tactics zero3.tactic -o out.mlir --verify"
)
EMITS = ("spmd", "loops", "nests", "sdy", "shardings")


def configure(parser: argparse.ArgumentParser) -> None:
    add_program(parser)
    add_mesh(parser)
    add_tactics(parser)
    add_device(parser)
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="where to write the result; - is standard output"
    )
    parser.add_argument(
        "--emit",
        choices=EMITS,
        default="spmd",
        help="what to write: the device-local program, the loop or nest form, Shardy's form, or "
        "the shardings as JSON (default: spmd)",
    )
    parser.add_argument(
        "--own-shardings",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="take the program's own shardings (sdy.sharding, mhlo.sharding) before the tactics "
        "(default: only if there are no tactics)",
    )
    parser.add_argument("--report", metavar="R.json", help="write what was done as JSON")
    parser.add_argument("--html", metavar="R.html", help="write the table as a page")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="run both programs on the same random inputs and compare",
    )
    parser.add_argument("--quiet", action="store_true", help="print no table")


def run(arguments: argparse.Namespace) -> int:
    paths = (arguments.output, arguments.report, arguments.html)
    _check_paths(paths)
    with output_files(*paths) as (output, report, html):
        result = _partition(arguments)
        if output is not None:
            output.write(result.emit(arguments.emit))
        on_error = STANDARD in paths
        _show(result, html, quiet=arguments.quiet, on_error=on_error)
        result.check_expectations()
        if arguments.verify:
            result.verify()
            if not arguments.quiet:
                print("equal", file=sys.stderr if on_error else sys.stdout)
        if report is not None:
            report.write(json.dumps(result.report, indent=1))
    return 0


def _check_paths(paths: tuple[str | None, ...]) -> None:
    named = [path for path in paths if path is not None]
    for path in named:
        if named.count(path) > 1:
            raise PartirError(f"two outputs go to one file: {path!r}")


def _partition(arguments: argparse.Namespace) -> Partitioned:
    from ..runtime.partition import partition

    mesh = parse_mesh(arguments.mesh)
    tactics = script(arguments)
    return partition(
        read_program(arguments.program),
        mesh,
        tactics,
        device=arguments.device,
        strict=arguments.strict,
        expectations=False,
        own=arguments.own_shardings,
    )


def _show(result: Partitioned, html: OutputFile | None, *, quiet: bool, on_error: bool) -> None:
    """The warnings on standard error, and the table."""
    for note in result.notes:
        print(f"{result.program.filename}: warning: {note}", file=sys.stderr)
    for step in result.steps:
        for warning in step.warnings:
            span = warning.span
            place = f"{span.file}:{span.line}:{span.column}"
            print(f"{place}: warning: {warning.message}", file=sys.stderr)
    if quiet and html is None:
        return
    from .tables import console, heading, page, steps_table

    report = result.report
    table = steps_table(report)
    if html is not None:
        html.write(page(heading(report), table))
    if not quiet:
        screen = console(error=on_error)
        screen.print(heading(report), soft_wrap=True)
        screen.print(table)
