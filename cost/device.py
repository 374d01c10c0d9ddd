"""What can one device of a mesh do? Models of devices, read from the data files beside this one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from ..partir_dialect.errors import PartirError

DEFAULT = "cpu"

_SCALE = {
    "": 1.0,
    **{p: 1000.0**n for n, p in enumerate(("k", "M", "G", "T", "P"), 1)},
    **{f"{p}i": 1024.0**n for n, p in enumerate(("K", "M", "G", "T", "P"), 1)},
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGTP]i?|[num])?(B/s|B|s)\Z")


@dataclass(frozen=True)
class Device:
    """The model of one device: bytes, bytes a second, seconds, operations a second by dtype.

    `link_bandwidth` is what a device sends along one mesh axis; `launch` is the least time that an
    op or a collective takes.
    """

    name: str
    memory: int
    memory_bandwidth: float
    link_bandwidth: float
    link_latency: float
    launch: float
    flops: Mapping[str, float]

    def peak(self, dtype: str) -> float:
        """Operations a second on elements of this type; types that are not listed run as f32."""
        return self.flops.get(dtype, self.flops["f32"])


def quantity(text: str, unit: str) -> float:
    """Reads `16GiB`, `25GB/s`, `4us` in the unit `B`, `B/s` or `s`; a bare number is in that unit.

    Raises `PartirError` for anything else.
    """
    try:
        return float(text)
    except ValueError:
        match = _QUANTITY.match(text.strip())
    if match is None or match[3] != unit:
        raise PartirError(f"a quantity in {unit} is wanted, got: {text!r}")
    return float(match[1]) * _SCALE[match[2] or ""]


def _folder() -> Traversable:
    return files("partir.cost.devices")


def device_names() -> tuple[str, ...]:
    """The names of the models that come with partir, sorted."""
    folder = _folder()
    return tuple(
        sorted(
            entry.name[: -len(".toml")]
            for entry in folder.iterdir()
            if entry.name.endswith(".toml")
        )
    )


def find_device(name: str) -> Device:
    """The model of that name. Raises `PartirError` if there is none."""
    names = device_names()
    if name not in names:
        raise PartirError(f"no such device: {name!r}", name=name, candidates=names)
    return read_device((_folder() / f"{name}.toml").read_text(), name)


def read_device(text: str, name: str) -> Device:
    """A model from the text of its file. Raises `PartirError` for what is missing or no number."""
    try:
        table: dict[str, Any] = tomllib.loads(text)
        return Device(
            name=name,
            memory=int(quantity(table["memory"], "B")),
            memory_bandwidth=quantity(table["memory_bandwidth"], "B/s"),
            link_bandwidth=quantity(table["link_bandwidth"], "B/s"),
            link_latency=quantity(table["link_latency"], "s"),
            launch=quantity(table["launch"], "s"),
            flops={"f32": 0.0} | {str(k): float(v) for k, v in table["flops"].items()},
        )
    except tomllib.TOMLDecodeError as error:
        raise PartirError(f"not TOML: device {name!r}: {error}") from error
    except KeyError as error:
        raise PartirError(f"the model of device {name!r} lacks: {error.args[0]}") from error
