"""`partir search`: find a plan and write it as a script of tactics (not in this version)."""

from __future__ import annotations

from .absent import configure, run

__all__ = ["EXAMPLE", "HELP", "configure", "run"]

HELP = "find a plan and write it as a script of tactics (not in this version)"
EXAMPLE = "partir search step.mlir --mesh batch=4,model=2 --device tpu_v5e --budget 500"
