"""What does a number with a unit mean? `16GiB` is bytes, `10ms` seconds."""

from __future__ import annotations

import re

UNITS: dict[str, int | float] = {
    "": 1,
    "B": 1,
    **{f"{p}B": 1000**n for n, p in enumerate(("k", "M", "G", "T", "P"), 1)},
    **{f"{p}iB": 1024**n for n, p in enumerate(("K", "M", "G", "T", "P"), 1)},
    "KB": 1000,
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1,
}
"""Bytes for sizes, seconds for times."""

_NUMBER = re.compile(r"(\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)([A-Za-z_]*)\Z")


def parse_number(text: str) -> int | float:
    """The value of `4`, `0.5`, `1e6`, `16GiB`, `10ms`.

    Raises `KeyError` with the unit if it is none, `ValueError` if there is no number.
    """
    match = _NUMBER.match(text)
    if match is None:
        raise ValueError(text)
    digits, unit = match.groups()
    if unit not in UNITS:
        raise KeyError(unit)
    number = float(digits) if re.search(r"[.eE]", digits) else int(digits)
    value = number * UNITS[unit]
    whole = isinstance(value, float) and value.is_integer() and unit.endswith("B")
    return int(value) if whole else value
