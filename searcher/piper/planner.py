"""Which plan is best for a layer graph? The search over time bounds, and the entry point.

The outer programme answers "is there a plan with time per sample at most T?". Bisection closes in
on the optimum, and the last check, for anything better than the best plan found, proves it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .downsets import Lattice, all_downsets, make_lattice, prefixes
from .evaluate import evaluate
from .inner import stated_memory
from .iteration import IterationSearch
from .model import Fault, LayerGraph, LayerGraphError, Plan, PlanOptions, PlanStage, Problem
from .outer import Outer, strictly_below
from .validate import check_graph

_CHAIN_FIRST = 100_000  # pairs from which the search begins on a single chain of downsets
_FINE = 1e-4

Progress = Callable[[str], None]


@dataclass(frozen=True)
class _Best:
    stages: tuple[PlanStage, ...]
    time: float


def plan(
    graph: LayerGraph,
    options: PlanOptions | None = None,
    *,
    progress: Progress | None = None,
) -> Plan:
    """The best plan for `graph`; `Plan.stages` is empty when no plan is feasible.

    `progress` receives lines of text, the first of which states the memory that the programme
    will take. Raises LayerGraphError for a graph or numbers that cannot be planned, or when the
    memory would exceed `options.memory_limit`.
    """
    options = options or PlanOptions()
    check_graph(graph)
    return plan_problem(Problem.of(graph, options), options, None, progress or _silent)


def plan_problem(
    problem: Problem, options: PlanOptions, masks: list[int] | None, say: Progress
) -> Plan:
    """As `plan`, for a checked problem; `masks` are the only downsets to use (None: all)."""
    began = time.perf_counter()
    graph, whole = problem.graph, masks is None
    if masks is None:
        masks = all_downsets(graph, options.memory_limit)
    lattice = make_lattice(graph, masks, options.memory_limit)
    stated = _state_memory(problem, lattice, options.memory_limit, say)
    best: _Best | None = None
    if whole and lattice.pairs > _CHAIN_FIRST:
        chain = make_lattice(graph, prefixes(graph), options.memory_limit)
        best = search_throughput(Outer(problem, chain), None, say)
    outer = Outer(problem, lattice)
    if options.objective == "throughput":
        best = search_throughput(outer, best, say)
    elif best is None:
        best = _attempt(outer, outer.upper_bound(), say)
    stages = best.stages if best else ()
    if stages and options.objective == "iteration":
        stages = IterationSearch(outer).run(stages).stages
    counts = {
        "downsets": float(lattice.size),
        "pairs": float(lattice.pairs),
        "checks": float(outer.checks),
        "exact_knapsacks": float(len(outer.inner.solved)),
        "stated_bytes": float(stated),
    }
    return finished(problem, stages, time.perf_counter() - began, counts)


def _state_memory(problem: Problem, lattice: Lattice, limit: float, say: Progress) -> int:
    """Say how much memory the tables will take at most; LayerGraphError if that is too much."""
    stated = stated_memory(problem, lattice)
    say(
        f"{lattice.size} downsets, {lattice.pairs} nested pairs, "
        f"at most {stated / 2**20:.0f} MiB of tables"
    )
    if stated > limit:
        message = (
            f"planning would take {stated} bytes, more than the limit of {limit:.0f}; "
            f"merge nodes or raise it, got: {lattice.pairs} nested pairs"
        )
        raise LayerGraphError([Fault(message, ("nodes",))])
    return stated


def finished(
    problem: Problem,
    stages: Sequence[PlanStage],
    seconds: float,
    statistics: dict[str, float],
) -> Plan:
    """The plan of `stages` with the independent evaluator's figures, which must find it valid."""
    if not stages:
        return Plan((), None, None, seconds=seconds, statistics=statistics)
    judged = evaluate(problem, stages)
    assert not judged.violations, judged.violations
    return Plan(
        tuple(stages),
        judged.time_per_sample,
        judged.iteration_time,
        judged.stage_times,
        judged.stage_memory,
        seconds,
        statistics,
    )


def search_throughput(outer: Outer, best: _Best | None, say: Progress) -> _Best | None:
    """The plan of least time per sample on the outer programme's lattice, or `best` if better."""
    low = outer.lower_bound()
    if not math.isfinite(low):
        return best
    if best is None:
        best = _attempt(outer, outer.upper_bound(), say)
        if best is None:
            return None
    limit = strictly_below(best.time) if best.time < 2 * low else _middle(low, best.time)
    while best.time > low:
        found = _attempt(outer, limit, say)
        if found is None:
            if limit >= strictly_below(best.time):
                return best
            low = limit
        else:
            best = found
        close = best.time - low <= _FINE * best.time
        limit = strictly_below(best.time) if close else _middle(low, best.time)
    return best


def _middle(low: float, high: float) -> float:
    return math.sqrt(low * high) if low > 0 and high > 2 * low else (low + high) / 2


def _attempt(outer: Outer, limit: float, say: Progress) -> _Best | None:
    stages = outer.check(limit)
    if stages is None:
        say(f"no plan within {limit:.9g} per sample")
        return None
    found = evaluate(outer.problem, stages).time_per_sample
    say(f"a plan with {found:.9g} per sample")
    return _Best(tuple(stages), found)


def _silent(_: str) -> None:
    pass
