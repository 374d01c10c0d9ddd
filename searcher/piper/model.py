"""What the planner is asked and what it answers: layer graphs, options, problems and plans.

Source of the model: Tarnawski, Narayanan, Phanishayee, "Piper: Multidimensional Planner for DNN
Parallelization", NeurIPS 2021. Times are in the input's unit, sizes in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ...partir_dialect.errors import PartirError, Span

Objective = Literal["throughput", "iteration"]
Schedule = Literal["1f1b", "gpipe"]
MOST_DEVICES = 2**14  # sums of device counts stay within 32-bit integers
JsonPath = tuple[str | int, ...]


def path_text(path: JsonPath) -> str:
    """`nodes[3].TMPCs.1[0].timePerSample` for a path into a JSON value."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text or "(the whole input)"


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a layer graph: what, where in the JSON, and where in the text."""

    message: str
    path: JsonPath = ()
    span: Span | None = None

    def render(self) -> str:
        """The fault as a diagnostic with its JSON path and, if the text is known, a caret."""
        message = f"{path_text(self.path)}: {self.message}"
        return PartirError(message, span=self.span).render()


class LayerGraphError(PartirError):
    """A layer graph, or the numbers to plan it with, that cannot be; lists every fault."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        assert faults
        first = faults[0]
        super().__init__(f"{path_text(first.path)}: {first.message}", span=first.span)
        self.faults = tuple(faults)

    def render(self) -> str:
        """All faults, one diagnostic after the other, and their number when there are several."""
        lines = [fault.render() for fault in self.faults]
        if len(lines) > 1:
            lines.append(f"{len(lines)} faults")
        return "\n".join(lines)


@dataclass(frozen=True)
class LayerOption:
    """One way to run a node with a tensor-parallel degree (a "TMPC" of the paper).

    `time` per sample on the t devices together; `parameters` bytes to synchronise a replica;
    memory per device is `memory_a · in_flight + memory_b` bytes. `sync_forward[u]` are the extra
    bytes of the edge from predecessor u, `sync_backward[w]` those of the edge to successor w,
    when that edge crosses a stage border; an absent neighbour costs nothing extra.
    """

    id: str
    time: float
    parameters: float
    memory_a: float
    memory_b: float
    sync_forward: Mapping[int, float] = field(default_factory=dict[int, float])
    sync_backward: Mapping[int, float] = field(default_factory=dict[int, float])


@dataclass(frozen=True)
class LayerNode:
    """A layer: its options for every tensor-parallel degree it can run with."""

    id: int
    name: str
    options: Mapping[int, tuple[LayerOption, ...]]


@dataclass(frozen=True)
class Edge:
    """A value that flows from `source` to `target`, in bytes per sample."""

    source: int
    target: int
    bytes: float


@dataclass(frozen=True)
class LayerGraph:
    """A directed acyclic graph of layers, and the planning numbers its file carries (if any)."""

    nodes: tuple[LayerNode, ...]
    edges: tuple[Edge, ...]
    devices: int | None = None
    memory: float | None = None
    bandwidth: float | None = None
    microbatches: int | None = None

    def order(self) -> list[int]:
        """Node ids in a topological order, ties by position; asserts that there is no cycle."""
        waiting = {node.id: 0 for node in self.nodes}
        after: dict[int, list[int]] = {node.id: [] for node in self.nodes}
        for edge in self.edges:
            waiting[edge.target] += 1
            after[edge.source].append(edge.target)
        ready = [node.id for node in self.nodes if not waiting[node.id]]
        for node in ready:
            for target in after[node]:
                waiting[target] -= 1
                if not waiting[target]:
                    ready.append(target)
        assert len(ready) == len(self.nodes), "a cycle, which validation must have refused"
        return ready

    def restricted(self, degrees: Iterable[int] | None, fastest_only: bool) -> LayerGraph:
        """The graph with options for `degrees` alone (None: all), or the fastest option alone.

        A node may lose all its options; it then fits into no stage.
        """
        keep = None if degrees is None else set(degrees)

        def options(node: LayerNode) -> dict[int, tuple[LayerOption, ...]]:
            chosen = {t: o for t, o in node.options.items() if keep is None or t in keep}
            if fastest_only:
                chosen = {t: (min(o, key=lambda x: x.time),) for t, o in chosen.items()}
            return chosen

        nodes = tuple(replace(node, options=options(node)) for node in self.nodes)
        return replace(self, nodes=nodes)


@dataclass(frozen=True)
class PlanOptions:
    """What to plan for; what is None comes from the graph's own header.

    `memory` bytes and `bandwidth` bytes a second per device. `objective`: "throughput" is Piper's
    time per sample of the slowest stage; "iteration" is the time of one whole batch with the
    pipeline's fill and drain. `schedule` decides how many microbatches are in flight. With
    `host_devices`, `bandwidth` is that between hosts and `host_bandwidth` that within one.
    `memory_limit` bounds the planner's own memory in bytes; `tolerance` is the relative gap at
    which the search for a better iteration time stops.
    """

    devices: int | None = None
    memory: float | None = None
    bandwidth: float | None = None
    microbatches: int | None = None
    objective: Objective = "throughput"
    schedule: Schedule = "1f1b"
    host_devices: int | None = None
    host_bandwidth: float | None = None
    memory_limit: float = 8 * 2**30
    tolerance: float = 1e-6


@dataclass(frozen=True)
class Problem:
    """A graph with every planning number known and checked.

    `allowed_data`: the only data-parallel degrees that stages may have (None: any).
    """

    graph: LayerGraph
    devices: int
    memory: float
    bandwidth: float
    microbatches: int
    schedule: Schedule = "1f1b"
    host_devices: int | None = None
    host_bandwidth: float | None = None
    tolerance: float = 1e-6
    allowed_data: frozenset[int] | None = None

    @classmethod
    def of(cls, graph: LayerGraph, options: PlanOptions) -> Problem:
        """The problem that `options` poses on `graph`; LayerGraphError lists what is wrong."""
        numbers = {
            "devices": _first(options.devices, graph.devices),
            "memory": _first(options.memory, graph.memory),
            "bandwidth": _first(options.bandwidth, graph.bandwidth),
            "microbatches": _first(options.microbatches, graph.microbatches),
        }
        faults = [fault for name, value in numbers.items() for fault in _number(name, value)]
        if not faults and int(numbers["devices"] or 0) > MOST_DEVICES:
            message = f"must be at most {MOST_DEVICES}, got: {numbers['devices']}"
            faults.append(Fault(message, ("devices",)))
        for name in ("host_devices", "host_bandwidth"):
            value = getattr(options, name)
            faults += _number(name, value) if value is not None else []
        if (options.host_devices is None) != (options.host_bandwidth is None):
            faults.append(Fault("host_devices and host_bandwidth come together"))
        faults += _choice("objective", options.objective, ("throughput", "iteration"))
        faults += _choice("schedule", options.schedule, ("1f1b", "gpipe"))
        if faults:
            raise LayerGraphError(faults)
        return cls(
            graph,
            int(numbers["devices"] or 0),
            float(numbers["memory"] or 0),
            float(numbers["bandwidth"] or 0),
            int(numbers["microbatches"] or 0),
            options.schedule,
            options.host_devices,
            options.host_bandwidth,
            options.tolerance,
        )

    def data_degrees(self) -> list[int]:
        """The data-parallel degrees a stage may have: divisors of N up to K, ascending."""
        n, allowed = self.microbatches, self.allowed_data
        degrees = [d for d in range(1, min(n, self.devices) + 1) if n % d == 0]
        return [d for d in degrees if allowed is None or d in allowed]

    def tensor_degrees(self) -> list[int]:
        """The tensor-parallel degrees that every stage might have: at most K, ascending."""
        every = {t for node in self.graph.nodes for t in node.options}
        return sorted(t for t in every if t <= self.devices)

    def edge_bandwidth(self) -> float:
        """Bytes a second between stages: inside a host only when the whole plan fits into one."""
        if self.host_devices is not None and self.devices <= self.host_devices:
            assert self.host_bandwidth is not None
            return self.host_bandwidth
        return self.bandwidth

    def sync_seconds(self, d: int, t: int) -> float:
        """Seconds per sample and byte of parameters to all-reduce gradients over d replicas.

        Flat: 4(d-1)/(dNB). In hosts of H devices g = H/t replicas share a host: a ring inside,
        then a ring over the hosts on 1/g of the bytes.
        """
        n, b = self.microbatches, self.bandwidth
        if self.host_devices is None or self.host_bandwidth is None:
            return 4 * (d - 1) / (d * n * b)
        g = min(d, max(1, self.host_devices // t))
        return 4 / n * ((g - 1) / (g * self.host_bandwidth) + (d - g) / (g * d * b))


@dataclass(frozen=True)
class PlanStage:
    """One stage: its nodes (ids, in the graph's order), degrees, and each node's option id."""

    nodes: tuple[int, ...]
    data_parallel: int
    tensor_parallel: int
    options: Mapping[int, str]


@dataclass(frozen=True)
class Plan:
    """The planner's answer: stages from input to output, or none when no plan is feasible.

    `time_per_sample` and `iteration_time` are the independent evaluator's figures, None without
    a plan; `seconds` is the planning time. `statistics` counts downsets, nested pairs, checks and
    the bytes stated before the start.
    """

    stages: tuple[PlanStage, ...]
    time_per_sample: float | None
    iteration_time: float | None
    stage_times: tuple[float, ...] = ()
    stage_memory: tuple[float, ...] = ()
    seconds: float = 0.0
    statistics: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def feasible(self) -> bool:
        """Whether there is a plan at all."""
        return bool(self.stages)

    def to_json(self) -> dict[str, object]:
        """The JSON object that `partir plan -o` writes."""
        return {
            "time_per_sample": self.time_per_sample,
            "iteration_time": self.iteration_time,
            "stages": [
                {
                    "nodes": list(stage.nodes),
                    "data_parallel": stage.data_parallel,
                    "tensor_parallel": stage.tensor_parallel,
                    "tmpc": {str(node): name for node, name in stage.options.items()},
                    "time_per_sample": time,
                    "memory": memory,
                }
                for stage, time, memory in zip(
                    self.stages, self.stage_times, self.stage_memory, strict=True
                )
            ],
            "seconds": self.seconds,
            "statistics": dict(self.statistics),
        }


def _first(given: float | None, header: float | None) -> float | None:
    return header if given is None else given


def _number(name: str, value: float | None) -> list[Fault]:
    if value is None:
        return [Fault("is given neither by the command nor by the file", (name,))]
    whole = name in ("devices", "microbatches", "host_devices")
    if not math.isfinite(value) or value <= 0 or (whole and value != int(value)):
        kind = "a whole number of at least 1" if whole else "a positive number"
        return [Fault(f"must be {kind}, got: {value}", (name,))]
    return []


def _choice(name: str, value: str, valid: tuple[str, ...]) -> list[Fault]:
    if value in valid:
        return []
    return [Fault(f"must be one of {', '.join(valid)}, got: {value}", (name,))]
