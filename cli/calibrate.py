"""`partir calibrate`: measure a device model on what is there (not in this version)."""

from __future__ import annotations

from .absent import configure, run

__all__ = ["EXAMPLE", "HELP", "configure", "run"]

HELP = "measure a device model on the devices that are there (not in this version)"
EXAMPLE = "partir calibrate --devices cpu:8 -o my.toml"
