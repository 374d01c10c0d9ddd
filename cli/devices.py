"""`partir devices`: lists the device models that estimates can be made for."""

from __future__ import annotations

import argparse

HELP = "list the device models"
EXAMPLE = "partir devices"


def configure(parser: argparse.ArgumentParser) -> None:
    del parser  # no options


def run(arguments: argparse.Namespace) -> int:
    from ..cost.device import device_names, find_device
    from .tables import console, devices_table

    del arguments
    console().print(devices_table([find_device(name) for name in device_names()]))
    return 0
