"""What would simpler ways of planning give? The rows to compare a plan with.

Data only and tensor only are one stage; equal stages (as PipeDream-2BW plans) have the same
degrees everywhere; "no recomputation" is the whole planner without the slower options. All but
that one choose every node's option exactly, so they are as good as their shape allows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .downsets import Lattice, make_lattice, prefixes
from .evaluate import Evaluation, evaluate
from .inner import Inner
from .model import LayerGraph, Plan, PlanOptions, PlanStage, Problem
from .planner import finished, plan_problem
from .validate import check_graph


@dataclass(frozen=True)
class Baseline:
    """A named way of planning and its best plan (no stages when it has no feasible one)."""

    name: str
    plan: Plan


def baselines(graph: LayerGraph, options: PlanOptions) -> list[Baseline]:
    """The best plans of the simpler planners for the same graph, numbers and objective."""
    check_graph(graph)
    problem = Problem.of(graph, options)
    whole = [0, (1 << len(graph.nodes)) - 1]
    data_only = replace(problem, graph=graph.restricted({1}, False))
    tensor_only = replace(problem, allowed_data=frozenset({1}))
    fastest = replace(problem, graph=graph.restricted(None, True))
    return [
        Baseline("data only", plan_problem(data_only, options, whole, _silent)),
        Baseline("tensor only", plan_problem(tensor_only, options, whole, _silent)),
        Baseline("equal stages", _equal_stages(problem, options)),
        Baseline("no recomputation", plan_problem(fastest, options, None, _silent)),
    ]


def _equal_stages(problem: Problem, options: PlanOptions) -> Plan:
    """The best plan whose stages share their degrees and are cut at equal compute time.

    The graph is cut along one topological order; the data degree is the largest that fits.
    """
    lattice = make_lattice(problem.graph, prefixes(problem.graph), options.memory_limit)
    inner = Inner(problem, lattice)
    best: tuple[PlanStage, ...] = ()
    figure = float("inf")
    for ti, di, cuts in _shapes(problem, inner, lattice):
        stages = _stages(problem, inner, ti, di, cuts)
        judged = evaluate(problem, stages) if stages else None
        if judged is not None and not judged.violations:
            value = _objective(judged, options)
            if value < figure:
                best, figure = stages, value
    return finished(problem, best, 0.0, {})


def _objective(judged: Evaluation, options: PlanOptions) -> float:
    iteration = options.objective == "iteration"
    return judged.iteration_time if iteration else judged.time_per_sample


def _shapes(
    problem: Problem, inner: Inner, lattice: Lattice
) -> Iterator[tuple[int, int, list[int]]]:
    """Tensor degree, data degree (indices) and the cuts of the chain, for each stage count."""
    for ti, degree in enumerate(inner.degrees):
        if degree.lacking[-1]:
            continue
        for count in range(1, min(problem.devices // degree.t, len(lattice.ids)) + 1):
            most = min(problem.devices // (count * degree.t), problem.microbatches // count)
            fitting = [di for di, d in enumerate(inner.data) if d <= most]
            target = [degree.fastest[-1] * i / count for i in range(count + 1)]
            ends = [min(range(lattice.size), key=lambda i: abs(degree.fastest[i] - x))
                    for x in target[1:-1]]  # fmt: skip
            cuts = [0, *ends, lattice.size - 1]
            if fitting and all(a < b for a, b in itertools.pairwise(cuts)):
                yield ti, fitting[-1], cuts


def _stages(
    problem: Problem, inner: Inner, ti: int, di: int, cuts: list[int]
) -> tuple[PlanStage, ...]:
    """The stages between the cuts with their best options; none if one does not fit."""
    d = int(inner.data[di])
    stages: list[PlanStage] = []
    for n, (lower, upper) in enumerate(itertools.pairwise(cuts)):
        y = len(cuts) - 1 - n if problem.schedule == "1f1b" else problem.microbatches // d
        chosen = inner.selection(lower, ti, upper, di, y)
        if chosen is None:
            return ()
        stages.append(PlanStage(tuple(chosen), d, inner.degrees[ti].t, chosen))
    return tuple(stages)


def _silent(_: str) -> None:
    pass
