"""What does a given plan cost, and is it valid? The judge of every plan, apart from the planner.

Nothing here is shared with the dynamic programme: the formulas are written again, node by node
and edge by edge, with correctly rounded sums (`math.fsum`), so that a mistake in one shows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .model import LayerOption, PlanStage, Problem


@dataclass(frozen=True)
class Evaluation:
    """A plan's figures and everything that is wrong with it.

    Times per sample and bytes per device, a stage each; `iteration_time` is the time of one batch
    with fill and drain. `violations` is empty for a valid plan.
    """

    stage_times: tuple[float, ...]
    stage_memory: tuple[float, ...]
    in_flight: tuple[int, ...]
    time_per_sample: float
    iteration_time: float
    devices: int
    violations: tuple[str, ...]


def evaluate(problem: Problem, stages: Sequence[PlanStage]) -> Evaluation:
    """Judge `stages`, ordered from input to output, by Piper's cost model.

    Iteration time: the busiest stage works through its N/d microbatches while the first and the
    last of them pass the others once: max_i (N - d_i)·T_i + Σ_j d_j·T_j.
    """
    violations = _structure(problem, stages)
    if violations:
        return Evaluation((), (), (), math.inf, math.inf, 0, tuple(violations))
    degrees = [stage.data_parallel for stage in stages]
    flight = [_in_flight(problem, degrees, i) for i in range(len(stages))]
    times = [_stage_time(problem, stage) for stage in stages]
    memory = [_stage_memory(problem, stage, y) for stage, y in zip(stages, flight, strict=True)]
    violations += [
        f"stage {i} needs {need} bytes, more than {problem.memory}"
        for i, need in enumerate(memory)
        if not need <= problem.memory
    ]
    n = problem.microbatches
    fill = math.fsum(d * time for d, time in zip(degrees, times, strict=True))
    steady = max((n - d) * time for d, time in zip(degrees, times, strict=True))
    devices = sum(stage.data_parallel * stage.tensor_parallel for stage in stages)
    return Evaluation(
        tuple(times),
        tuple(memory),
        tuple(flight),
        max(times),
        steady + fill,
        devices,
        tuple(violations),
    )


def _chosen(problem: Problem, stage: PlanStage) -> dict[int, LayerOption]:
    by_id = {node.id: node for node in problem.graph.nodes}
    chosen: dict[int, LayerOption] = {}
    for node in stage.nodes:
        for option in by_id[node].options[stage.tensor_parallel]:
            if option.id == stage.options[node]:
                chosen[node] = option
    return chosen


def _in_flight(problem: Problem, degrees: Sequence[int], i: int) -> int:
    if problem.schedule == "gpipe":
        return problem.microbatches // degrees[i]
    return math.ceil(sum(degrees[i:]) / degrees[i])


def _stage_memory(problem: Problem, stage: PlanStage, in_flight: int) -> float:
    chosen = _chosen(problem, stage).values()
    return math.fsum(option.memory_a * in_flight + option.memory_b for option in chosen)


def _stage_time(problem: Problem, stage: PlanStage) -> float:
    chosen = _chosen(problem, stage)
    d = stage.data_parallel
    crossing: list[float] = []
    for edge in problem.graph.edges:
        if edge.target in chosen and edge.source not in chosen:
            extra = chosen[edge.target].sync_forward.get(edge.source, 0.0)
            crossing.append(2 * (edge.bytes + extra))
        if edge.source in chosen and edge.target not in chosen:
            extra = chosen[edge.source].sync_backward.get(edge.target, 0.0)
            crossing.append(2 * (edge.bytes + extra))
    compute = math.fsum(option.time for option in chosen.values()) / d
    borders = math.fsum(crossing) / (d * _border_bandwidth(problem))
    weights = math.fsum(option.parameters for option in chosen.values())
    return compute + borders + _gradients(problem, d, stage.tensor_parallel, weights)


def _border_bandwidth(problem: Problem) -> float:
    one_host = problem.host_devices is not None and problem.devices <= problem.host_devices
    return (problem.host_bandwidth or 0.0) if one_host else problem.bandwidth


def _gradients(problem: Problem, d: int, t: int, weights: float) -> float:
    """Time per sample to all-reduce `weights` bytes over d replicas of t devices each."""
    n = problem.microbatches
    if problem.host_devices is None:
        return 4 * (d - 1) * weights / (d * n) / problem.bandwidth
    together = min(d, max(1, problem.host_devices // t))
    inside = (together - 1) / together / (problem.host_bandwidth or 0.0)
    across = (d / together - 1) / (d / together) / together / problem.bandwidth
    return 4 * weights / n * (inside + across)


def _structure(problem: Problem, stages: Sequence[PlanStage]) -> list[str]:
    """What is wrong with the plan's shape: coverage, order, degrees, options, device count."""
    by_id = {node.id: node for node in problem.graph.nodes}
    seen = Counter(node for stage in stages for node in stage.nodes)
    wrong = [f"node {node} is in {count} stages" for node, count in seen.items() if count > 1]
    wrong += [f"node {node} is in no stage" for node in by_id if node not in seen]
    wrong += [f"node {node} is not in the graph" for node in seen if node not in by_id]
    if wrong:
        return wrong
    place = {node: i for i, stage in enumerate(stages) for node in stage.nodes}
    wrong += [
        f"edge {e.source} -> {e.target} runs from stage {place[e.source]} to an earlier one"
        for e in problem.graph.edges
        if place[e.source] > place[e.target]
    ]
    for i, stage in enumerate(stages):
        d, t = stage.data_parallel, stage.tensor_parallel
        if not stage.nodes:
            wrong.append(f"stage {i} has no node")
        if d < 1 or problem.microbatches % d:
            wrong.append(f"stage {i}: {problem.microbatches} microbatches do not divide by {d}")
        for node in stage.nodes:
            ids = [option.id for option in by_id[node].options.get(t, ())]
            if stage.options.get(node) not in ids:
                wrong.append(f"node {node} has no option {stage.options.get(node)!r} for t={t}")
    replicas = sum(stage.data_parallel for stage in stages)
    devices = sum(stage.data_parallel * stage.tensor_parallel for stage in stages)
    if replicas > problem.microbatches:
        wrong.append(f"data degrees sum to {replicas}, more than {problem.microbatches}")
    if devices > problem.devices:
        wrong.append(f"the plan needs {devices} devices, more than {problem.devices}")
    return wrong
