"""What does the user call an argument, a result, a place in their source?

Argument names come from JAX's locations (`params['layer_0']['wq']`), result names from
`jax.result_info`; both are given as flat paths (`params/layer_0/wq`).
"""

from __future__ import annotations

import re
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    DictionaryAttr,
    FileLineColLoc,
    FusedLoc,
    NameLoc,
    StringAttr,
    UnregisteredOp,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

_PART = re.compile(
    r"""\[(?P<quote>['"])(?P<key>.*?)(?P=quote)\]|\[(?P<index>[^\]'"]*)\]|\.?(?P<word>[^.\[\]]+)"""
)


def op_name(op: Operation) -> str:
    """The name of an op as MLIR knows it."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def flat_path(text: str) -> str:
    """`params['layer_0']['wq']` → `params/layer_0/wq`; `state.mu[0]` → `state/mu/0`.

    A text that is a flat path already stays as it is.
    """
    if "/" in text and "[" not in text:
        return text
    parts: list[str] = []
    for match in _PART.finditer(text):
        part = match["key"] if match["quote"] else (match["index"] or match["word"])
        if part:
            parts.append(part)
    return "/".join(parts)


def _name_of(location: Attribute) -> str | None:
    if isinstance(location, NameLoc):
        return location.desc.data
    if isinstance(location, FusedLoc):
        for part in cast("ArrayAttr[Attribute]", location.locations):
            if (name := _name_of(part)) is not None:
                return name
    return None


def _unique(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    unique: list[str] = []
    for name in names:
        count = seen.get(name, 0)
        seen[name] = count + 1
        unique.append(name if not count else f"{name}_{count}")
    return unique


def argument_names(func: FuncOp) -> list[str]:
    """One flat path for each argument, from its location; `arg0` … where there is none.

    Equal names get a suffix (`x`, `x_1`), so that a name always means one argument.
    """
    names: list[str] = []
    block = func.body.blocks.first
    locations = [argument.location for argument in block.args] if block else []
    count = len(func.function_type.inputs)
    for index in range(count):
        name = _name_of(locations[index]) if index < len(locations) else None
        names.append((flat_path(name) if name else "") or f"arg{index}")
    return _unique(names)


def result_names(func: FuncOp) -> list[str]:
    """One flat path for each result, from `jax.result_info`: `result/params/embed`.

    JAX writes `result[0]['embed']` or just `[0]['embed']`; where it says nothing the name is
    `result/0` …
    """
    infos = func.res_attrs.data if func.res_attrs is not None else ()
    names: list[str] = []
    for index in range(len(func.function_type.outputs)):
        info = infos[index] if index < len(infos) else None
        text = info.data.get("jax.result_info") if isinstance(info, DictionaryAttr) else None
        path = flat_path(text.data) if isinstance(text, StringAttr) else ""
        if path == "result" or path.startswith("result/"):
            path = path[len("result") :].lstrip("/")
        names.append(f"result/{path}" if path else f"result/{index}")
    return _unique(names)


def _place(location: Attribute) -> tuple[str, str]:
    """The file position and the scope name that a location holds, either may be empty."""
    if isinstance(location, FileLineColLoc):
        line, column = location.line.data, location.column.data
        return f"{location.filename.data}:{line}:{column}", ""
    if isinstance(location, NameLoc):
        place, _ = _place(location.location)
        return place, location.desc.data
    if isinstance(location, CallSiteLoc):
        return _place(location.callee)
    if isinstance(location, FusedLoc):
        for part in cast("ArrayAttr[Attribute]", location.locations):
            place, scope = _place(part)
            if place or scope:
                return place, scope
    return "", ""


def location_text(location: Attribute) -> str:
    """A location for people: `model.py:12:3 (jit(step)/layer_0/mul)`; empty if unknown."""
    place, scope = _place(location)
    if place and scope:
        return f"{place} ({scope})"
    return place or scope
