"""How long does each part of the road take? `make bench` prints a table for the shared programs.

Seconds on this machine: read (with verification), prepare, each tactic with its plan and estimate,
lower, print. Best of three runs.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import partir

SHARED = Path(os.environ.get("PARTIR_SHARED", Path(__file__).resolve().parents[2] / "shared"))
PROGRAMS = ("mlp_train", "t_train_L2", "t_train_L4", "llama_train_L2", "t_train_L32")
TACTICS = ["batch(axis=batch)", "megatron(axis=model)", "zero3(axis=batch)"]
PHASES = ("read", "prepare", "tactics", "lower", "print")
RUNS = 3


def seconds(path: Path) -> tuple[int, dict[str, float]]:
    """The ops of the prepared program, and the best time of each phase."""
    best: dict[str, float] = {}
    ops = 0
    for _ in range(RUNS):
        result = partir.partition(partir.read(path), partir.Mesh(batch=4, model=2), TACTICS)
        assert result.spmd_text
        ops = len(result.graph.kinds)
        for phase, value in result.clock.seconds.items():
            best[phase] = min(value, best.get(phase, value))
    return ops, best


def main() -> int:
    if not SHARED.is_dir():
        print("no programs: PARTIR_SHARED names no folder", file=sys.stderr)
        return 2
    table = Table(title="seconds, best of three")
    for name in ("program", "ops", *PHASES, "sum"):
        table.add_column(name, justify="left" if name == "program" else "right")
    for name in PROGRAMS:
        ops, best = seconds(SHARED / "programs" / f"{name}.mlir")
        figures = [best.get(phase, 0.0) for phase in PHASES]
        table.add_row(name, str(ops), *(f"{value:.3f}" for value in (*figures, sum(figures))))
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
