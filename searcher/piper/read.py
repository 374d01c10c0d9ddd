"""Which layer graph does a JSON text describe, and if none, what is wrong with it and where?

The text is read with the standard reader; only when something is wrong a second, slower reader
finds the place of every value, so that each fault comes with its line and a caret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from ...partir_dialect.errors import Span
from .model import (
    Edge,
    Fault,
    JsonPath,
    LayerGraph,
    LayerGraphError,
    LayerNode,
    LayerOption,
    path_text,
)
from .validate import graph_faults

_NOT_THERE = object()
_SPACE = re.compile(r"[ \t\n\r]*")
_DEEPEST = 12  # levels: no fault is reported deeper than a sync entry


def read_layer_graph(path: str | Path) -> LayerGraph:
    """The layer graph in the file at `path`; LayerGraphError lists every fault in it."""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise LayerGraphError([Fault(f"cannot be read: {error.strerror}", (str(path),))]) from None
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text, at byte {error.start}"
        raise LayerGraphError([Fault(message, (str(path),))]) from None
    return parse_layer_graph(text, str(path))


def parse_layer_graph(text: str, filename: str = "<string>") -> LayerGraph:
    """The layer graph that `text` describes in Piper's JSON form.

    Keys: `maxDevices`, `maxMemoryPerDevice` (bytes), `bandwidth` (bytes/s), `mbsInBatch` (older:
    `maxBatchSize`), all optional; `nodes`, `edges`. Raises LayerGraphError with all faults.
    """
    try:
        repeated: list[str] = []
        value = _loads(text, repeated)
    except json.JSONDecodeError as error:
        span = Span.at(filename, text, error.pos)
        message = f"not valid JSON: {error.msg}"
        if error.pos >= len(text.rstrip()):
            message += "; the text ends too early"
        raise LayerGraphError([Fault(message, (), span)]) from None
    except RecursionError:
        raise LayerGraphError([Fault("not valid JSON: nested too deeply")]) from None
    reader = _Reader()
    graph = reader.graph(value)
    if not reader.faults and not repeated:
        return graph
    raise LayerGraphError(_located(text, filename, reader.faults))


def _loads(text: str, repeated: list[str]) -> object:
    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(items)
        if len(made) != len(items):
            repeated.append("")
        return made

    return json.loads(text, object_pairs_hook=pairs)


class _Reader:
    """Turns a JSON value into a graph; what does not fit goes to `faults`, and reading goes on."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def fault(self, message: str, path: JsonPath) -> None:
        self.faults.append(Fault(message, path))

    def graph(self, value: object) -> LayerGraph:
        top = self.object(value, ())
        if top is None:
            return LayerGraph((), ())
        nodes, node_places, unreadable = self.nodes(top)
        edges: list[Edge] = []
        edge_places: list[int] = []
        for i, item in self.array(top, "edges", ()):
            edge = self.edge(item, ("edges", i))
            if edge is not None:
                edges.append(edge)
                edge_places.append(i)
        whole = isinstance(top.get("nodes"), list) and None not in unreadable
        if whole:
            ids = frozenset(i for i in unreadable if i is not None)
            self.faults += graph_faults(nodes, edges, node_places, edge_places, ids)
        devices = self.positive(top, "maxDevices", whole=True)
        return LayerGraph(
            tuple(nodes),
            tuple(edges),
            None if devices is None else int(devices),
            self.positive(top, "maxMemoryPerDevice"),
            self.positive(top, "bandwidth"),
            self.microbatches(top),
        )

    def microbatches(self, top: Mapping[str, object]) -> int | None:
        """`mbsInBatch` or its older name; both only when they agree."""
        new = self.positive(top, "mbsInBatch", whole=True)
        old = self.positive(top, "maxBatchSize", whole=True)
        if new is not None and old is not None and new != old:
            self.fault(f"differs from mbsInBatch ({new:g}), got: {old:g}", ("maxBatchSize",))
        chosen = old if new is None else new
        return None if chosen is None else int(chosen)

    def nodes(
        self, top: Mapping[str, object]
    ) -> tuple[list[LayerNode], list[int], set[int | None]]:
        """The readable nodes, their places, and the ids of the others (None: unknown id)."""
        nodes: list[LayerNode] = []
        places: list[int] = []
        unreadable: set[int | None] = set()
        for i, item in self.array(top, "nodes", ()):
            path: JsonPath = ("nodes", i)
            fields = self.object(item, path)
            if fields is None:
                unreadable.add(None)
                continue
            number = self.identity(fields, "id", path)
            options = self.tmpcs(fields, path)
            name = self.text(fields, "name", path, default=str(number))
            if number is None or options is None or name is None:
                unreadable.add(number)
                continue
            nodes.append(LayerNode(number, name, options))
            places.append(i)
        return nodes, places, unreadable

    def tmpcs(
        self, fields: Mapping[str, object], path: JsonPath
    ) -> dict[int, tuple[LayerOption, ...]] | None:
        table = self.object(self.member(fields, "TMPCs", path), (*path, "TMPCs"))
        if table is None:
            return None
        found: dict[int, tuple[LayerOption, ...]] = {}
        before = len(self.faults)
        for key in table:
            here: JsonPath = (*path, "TMPCs", key)
            if not re.fullmatch(r"[1-9][0-9]{0,8}", key):
                self.fault(f"a tensor-parallel degree is a whole number, got: {key}", here)
                continue
            items = list(self.array(table, key, (*path, "TMPCs")))
            options = [self.option(item, (*here, i)) for i, item in items]
            found[int(key)] = tuple(option for option in options if option is not None)
        return found if len(self.faults) == before else None

    def option(self, value: object, path: JsonPath) -> LayerOption | None:
        fields = self.object(value, path)
        if fields is None:
            return None
        name = self.text(fields, "id", path)
        keys = ("timePerSample", "parameterSize", "memoryUsageA", "memoryUsageB")
        costs = [self.number(fields, key, path) for key in keys]
        forward = self.sync(fields, "syncTimeFw", path)
        backward = self.sync(fields, "syncTimeBw", path)
        numbers = [cost for cost in costs if cost is not None]
        if name is None or len(numbers) < 4 or forward is None or backward is None:
            return None
        time, parameters, memory_a, memory_b = numbers
        return LayerOption(name, time, parameters, memory_a, memory_b, forward, backward)

    def sync(
        self, fields: Mapping[str, object], key: str, path: JsonPath
    ) -> dict[int, float] | None:
        table = self.object(fields.get(key, {}), (*path, key))
        if table is None:
            return None
        found: dict[int, float] = {}
        for other in table:
            size = self.number(table, other, (*path, key))
            if not re.fullmatch(r"0|-?[1-9][0-9]*", other):
                self.fault(f"a node id is a whole number, got: {other}", (*path, key, other))
            elif size is not None:
                found[int(other)] = size
        return found if len(found) == len(table) else None

    def edge(self, value: object, path: JsonPath) -> Edge | None:
        fields = self.object(value, path)
        if fields is None:
            return None
        source = self.identity(fields, "sourceId", path)
        target = self.identity(fields, "destId", path)
        size = self.number(fields, "communicationCost", path)
        if source is None or target is None or size is None:
            return None
        return Edge(source, target, size)

    # JSON types

    def member(self, fields: Mapping[str, object], key: str, path: JsonPath) -> object:
        if key not in fields:
            self.fault(f"the key {key!r} is missing", path)
            return _NOT_THERE
        return fields[key]

    def object(self, value: object, path: JsonPath) -> dict[str, object] | None:
        if isinstance(value, dict):
            return cast(dict[str, object], value)
        if value is not _NOT_THERE:
            self.fault(f"must be an object, got: {_shown(value)}", path)
        return None

    def array(
        self, fields: Mapping[str, object], key: str, path: JsonPath
    ) -> Iterator[tuple[int, object]]:
        value = self.member(fields, key, path)
        if isinstance(value, list):
            yield from enumerate(cast(list[object], value))
        elif value is not _NOT_THERE:
            self.fault(f"must be an array, got: {_shown(value)}", (*path, key))

    def number(self, fields: Mapping[str, object], key: str, path: JsonPath) -> float | None:
        value = self.member(fields, key, path)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            try:
                return float(value)
            except OverflowError:
                value = "a number beyond any float"
        if value is not _NOT_THERE:
            self.fault(f"must be a number, got: {_shown(value)}", (*path, key))
        return None

    def positive(self, top: Mapping[str, object], key: str, *, whole: bool = False) -> float | None:
        if key not in top:
            return None
        value = self.number(top, key, ())
        if value is None:
            return None
        if not 0 < value < float("inf") or (whole and value != int(value)):
            kind = "a whole number of at least 1" if whole else "a positive number"
            self.fault(f"must be {kind}, got: {_shown(top[key])}", (key,))
            return None
        return value

    def identity(self, fields: Mapping[str, object], key: str, path: JsonPath) -> int | None:
        value = self.member(fields, key, path)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if value is not _NOT_THERE:
            self.fault(f"a node id is a whole number, got: {_shown(value)}", (*path, key))
        return None

    def text(
        self, fields: Mapping[str, object], key: str, path: JsonPath, default: str | None = None
    ) -> str | None:
        if default is not None and key not in fields:
            return default
        value = self.member(fields, key, path)
        if isinstance(value, str):
            return value
        if value is not _NOT_THERE:
            self.fault(f"must be a string, got: {_shown(value)}", (*path, key))
        return None


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) and len(value) > 40 else json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _located(text: str, filename: str, faults: list[Fault]) -> list[Fault]:
    """The faults with their places, those of repeated keys added, in the order of the text."""
    places, repeated = _places(text)
    located: list[tuple[int, Fault]] = []
    for fault in faults:
        path = fault.path
        while path not in places:
            path = path[:-1]
        located.append((places[path], fault))
    for path, offset in repeated:
        fault = Fault(f"the key is given twice, got: {path_text(path[-1:])}", path)
        located.append((offset, fault))
    located.sort(key=lambda pair: pair[0])
    return [
        Fault(fault.message, fault.path, Span.at(filename, text, offset))
        for offset, fault in located
    ]


def _places(text: str) -> tuple[dict[JsonPath, int], list[tuple[JsonPath, int]]]:
    """Where every value of a valid JSON text begins, and where keys are given a second time."""
    places: dict[JsonPath, int] = {}
    repeated: list[tuple[JsonPath, int]] = []
    decoder = json.JSONDecoder()

    def space(at: int) -> int:
        match = _SPACE.match(text, at)
        return match.end() if match else at

    def scan(at: int, path: JsonPath) -> int:
        places[path] = at
        if text[at] not in "{[" or len(path) >= _DEEPEST:
            return decoder.raw_decode(text, at)[1]
        is_object, close = text[at] == "{", "}" if text[at] == "{" else "]"
        at = space(at + 1)
        count = 0
        while text[at] != close:
            key: str | int = count
            if is_object:
                key_at = at
                key, at = cast(tuple[str, int], decoder.raw_decode(text, at))
                if (*path, key) in places:
                    repeated.append(((*path, key), key_at))
                at = space(space(at) + 1)
            at = space(scan(at, (*path, key)))
            at = space(at + 1) if text[at] == "," else at
            count += 1
        return at + 1

    scan(space(0), ())
    return places, repeated
