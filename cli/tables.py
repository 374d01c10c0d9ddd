"""How do reports look on a terminal? Tables and numbers with units."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..cost.device import Device

COLLECTIVES = {
    "all_gather": "all_gather",
    "all_reduce": "all_reduce",
    "reduce_scatter": "reduce_scatter",
    "all_to_all": "all_to_all",
    "collective_permute": "permute",
}
PIPE_WIDTH = 200


def console(*, error: bool = False) -> Console:
    """A console on standard output (or error), wide enough for the tables when piped."""
    stream = sys.stderr if error else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False)


def amount(value: float) -> str:
    """Bytes for people: `0`, `512 B`, `1.5 kB`, `2.3 MB`, decimal, at most four digits."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 1000 or unit == "TB":
            break
        value /= 1000
    if unit == "B":
        return f"{value:.0f} B" if value else "0"
    return f"{value:.3g} {unit}" if abs(value) < 999.5 else f"{value:.0f} {unit}"


def duration(seconds: float) -> str:
    """Seconds for people: `12 us`, `3.4 ms`, `1.2 s`."""
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if seconds * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def heading(report: Mapping[str, Any]) -> Text:
    """Which program, mesh and device a report is about."""
    mesh = ", ".join(f"{axis['axis']}={axis['size']}" for axis in report["mesh"])
    return Text(f"{report['program']} on {mesh}, per device ({report['device']})")


def page(heading: Text, table: Table) -> str:
    """The table as a page of HTML."""
    recorder = Console(file=io.StringIO(), width=PIPE_WIDTH, record=True, highlight=False)
    recorder.print(heading, soft_wrap=True)
    recorder.print(table)
    return recorder.export_html(inline_styles=True)


def devices_table(devices: Sequence[Device]) -> Table:
    """A row for each device model."""
    table = Table(title="device models", title_justify="left")
    for name in ("name", "memory", "memory bandwidth", "link bandwidth", "f32", "bf16"):
        table.add_column(name, justify="left" if name == "name" else "right", no_wrap=True)
    for device in devices:
        table.add_row(
            device.name,
            f"{device.memory / 2**30:.3g} GiB",
            f"{amount(device.memory_bandwidth)}/s",
            f"{amount(device.link_bandwidth)}/s",
            *(f"{device.peak(dtype) / 1e12:.3g} TFLOP/s" for dtype in ("f32", "bf16")),
        )
    return table


def _collective(entry: Mapping[str, int]) -> str:
    return f"{entry['count']} ({amount(entry['bytes'])})" if entry["count"] else "-"


def steps_table(report: Mapping[str, Any]) -> Table:
    """A row for each tactic: what the program is after it, on one device."""
    table = Table()
    kinds = [k for k in COLLECTIVES if any(s["collectives"][k]["count"] for s in report["steps"])]
    table.add_column("after", overflow="fold")
    for kind in kinds or ["all_reduce"]:
        table.add_column(COLLECTIVES[kind], justify="right", overflow="fold")
    for name in ("arguments", "peak memory", "time", "conflicts", "fallbacks"):
        table.add_column(name, justify="right", overflow="fold")
    for step in report["steps"]:
        table.add_row(
            Text(step["tactic"]),
            *(_collective(step["collectives"][kind]) for kind in kinds or ["all_reduce"]),
            amount(step["argument_bytes"]),
            amount(step["peak_memory_bytes"]),
            duration(step["estimated_time_s"]),
            str(step["conflicts"]),
            str(step["fallbacks"]),
        )
    return table


def comparison(first: Mapping[str, Any], second: Mapping[str, Any], names: Sequence[str]) -> Table:
    """Totals of two reports side by side, and the arguments whose placement differs."""
    table = Table(title=f"{first['program']} and {second['program']}", title_justify="left")
    for name in ("", *names):
        table.add_column(Text(name), justify="right" if name else "left")
    ends = (first["steps"][-1], second["steps"][-1])
    for kind in COLLECTIVES:
        cells = [_collective(end["collectives"][kind]) for end in ends]
        if any(end["collectives"][kind]["count"] for end in ends):
            table.add_row(kind, *cells)
    table.add_row("arguments", *(amount(end["argument_bytes"]) for end in ends))
    table.add_row("peak memory", *(amount(end["peak_memory_bytes"]) for end in ends))
    table.add_row("estimated time", *(duration(end["estimated_time_s"]) for end in ends))
    table.add_row("conflicts", *(str(end["conflicts"]) for end in ends))
    table.add_row("fallbacks", *(str(end["fallbacks"]) for end in ends))
    for side in ("arguments", "results"):
        for row in _differing(first[side], second[side]):
            table.add_row(*map(Text, row))
    return table


def _differing(
    first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]
) -> list[tuple[str, str, str]]:
    """Name and both placements of the values that are placed differently, or are in one only."""
    sides = [{entry["name"]: placement_text(entry) for entry in side} for side in (first, second)]
    names = dict.fromkeys((*sides[0], *sides[1]))
    return [
        (name, sides[0].get(name, "absent"), sides[1].get(name, "absent"))
        for name in names
        if sides[0].get(name) != sides[1].get(name)
    ]


def placement_text(entry: Mapping[str, Any]) -> str:
    """`f32[256, 64] {batch} {model}`: a report's entry with the axes of each dimension."""
    dims = " ".join("{" + ",".join(axes) + "}" for axes in entry["placement"])
    return f"{entry['dtype']}{entry['shape']} {dims}".rstrip()
