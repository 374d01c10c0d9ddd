"""What does `partir plan LAYERS.json` answer? Exit status, the JSON object and the table."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .baselines import baselines
from .model import Objective, Plan, PlanOptions, Schedule
from .planner import Progress, plan
from .read import read_layer_graph

Row = tuple[str, ...]


class PlanOutcome(NamedTuple):
    """Exit status (0, or 1 without a feasible plan), the JSON object, and two tables of text.

    `rows` compares the plan with the baselines, `stage_rows` lists the plan's stages; the first
    row of each is its heading.
    """

    status: int
    result: dict[str, object]
    rows: list[Row]
    stage_rows: list[Row]


def plan_command(
    path: str | Path,
    devices: int | None = None,
    memory: float | None = None,
    bandwidth: float | None = None,
    microbatches: int | None = None,
    *,
    objective: Objective = "throughput",
    schedule: Schedule = "1f1b",
    host_devices: int | None = None,
    host_bandwidth: float | None = None,
    memory_limit: float = 8 * 2**30,
    compare: bool = True,
    progress: Progress | None = None,
) -> PlanOutcome:
    """Plan the layer graph in the JSON file at `path`; what is None comes from the file.

    `memory` in bytes and `bandwidth` in bytes a second per device; `compare` adds the baselines
    to the table. LayerGraphError (exit status 2) lists every fault of the file or the numbers.
    """
    options = PlanOptions(
        devices,
        memory,
        bandwidth,
        microbatches,
        objective,
        schedule,
        host_devices,
        host_bandwidth,
        memory_limit,
    )
    graph = read_layer_graph(path)
    found = plan(graph, options, progress=progress)
    others = baselines(graph, options) if compare else []
    rows: list[Row] = [("plan", "time per sample", "iteration time", "stages", "devices")]
    rows.append(_row("piper", found))
    rows += [_row(other.name, other.plan) for other in others]
    return PlanOutcome(0 if found.feasible else 1, found.to_json(), rows, _stage_rows(found))


def _row(name: str, found: Plan) -> Row:
    if found.time_per_sample is None or found.iteration_time is None:
        return (name, "infeasible", "infeasible", "0", "0")
    devices = sum(stage.data_parallel * stage.tensor_parallel for stage in found.stages)
    return (
        name,
        f"{found.time_per_sample:.6g}",
        f"{found.iteration_time:.6g}",
        str(len(found.stages)),
        str(devices),
    )


def _stage_rows(found: Plan) -> list[Row]:
    rows: list[Row] = [("stage", "nodes", "data", "tensor", "options", "time", "memory")]
    figures = zip(found.stages, found.stage_times, found.stage_memory, strict=True)
    for n, (stage, time, memory) in enumerate(figures):
        names = list(stage.options.values())
        counts = ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))
        rows.append(
            (
                str(n),
                str(len(stage.nodes)),
                str(stage.data_parallel),
                str(stage.tensor_parallel),
                counts,
                f"{time:.6g}",
                f"{memory / 2**30:.3f} GiB",
            )
        )
    return rows
