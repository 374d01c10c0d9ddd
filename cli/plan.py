"""`partir plan`: stages, degrees and recomputation for a layer graph, by Piper's algorithm."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from ..partir_dialect.errors import PartirError
from .output import STANDARD, output_files

if TYPE_CHECKING:
    from rich.table import Table

HELP = "plan pipeline stages, degrees and recomputation with Piper's algorithm"
EXAMPLE = "partir plan layers.json --devices 64 --memory 16GiB --bandwidth 25GiB/s -o plan.json"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("layers", metavar="LAYERS.json", help="a layer graph as Piper's files")
    parser.add_argument("--devices", type=int, metavar="K", help="default: what the file says")
    parser.add_argument("--memory", metavar="BYTES", help="of a device, as in 16GiB")
    parser.add_argument("--bandwidth", metavar="B", help="of a device, as in 25GiB/s")
    parser.add_argument("--microbatches", type=int, metavar="N", help="in a batch")
    parser.add_argument("--objective", choices=("throughput", "iteration"), default="throughput")
    parser.add_argument("--schedule", choices=("1f1b", "gpipe"), default="1f1b")
    parser.add_argument("-o", "--output", metavar="PLAN.json", help="- is standard output")


def run(arguments: argparse.Namespace) -> int:
    from ..cost.device import quantity
    from ..searcher.piper import plan_command
    from .tables import console

    if arguments.layers.endswith((".mlir", ".mlirbc")):
        raise PartirError(f"this version plans layer graphs, not programs: {arguments.layers!r}")
    memory = None if arguments.memory is None else quantity(arguments.memory, "B")
    bandwidth = None if arguments.bandwidth is None else quantity(arguments.bandwidth, "B/s")
    with output_files(arguments.output) as (output,):
        outcome = plan_command(
            arguments.layers,
            arguments.devices,
            memory,
            bandwidth,
            arguments.microbatches,
            objective=arguments.objective,
            schedule=arguments.schedule,
        )
        if output is not None:
            output.write(json.dumps(outcome.result, indent=1))
        screen = console(error=arguments.output == STANDARD)
        screen.print(_table("plans", outcome.rows))
        if outcome.status == 0:
            screen.print(_table("stages", outcome.stage_rows))
        else:
            print("no feasible plan", file=sys.stderr)
    return outcome.status


def _table(title: str, rows: list[tuple[str, ...]]) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for number, name in enumerate(rows[0]):
        table.add_column(name, justify="right" if number else "left")
    for row in rows[1:]:
        table.add_row(*row)
    return table
