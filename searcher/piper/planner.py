"""Which plan is best for a layer graph? The search over time bounds, and the entry point.

The outer programme answers "is there a plan with time per sample at most T?". Bisection closes in
on the optimum, and the last check, for anything better than the best plan found, proves it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .downsets import Lattice, all_downsets, make_lattice, near, prefixes
from .evaluate import evaluate
from .inner import stated_memory
from .iteration import IterationSearch
from .model import Fault, LayerGraph, LayerGraphError, Plan, PlanOptions, PlanStage, Problem
from .outer import Outer, strictly_below
from .validate import check_graph

_LARGE = 100_000  # nested pairs from which the search begins on few downsets
_NEAR = 1500  # downsets near the best plan so far
_ROUNDS = 2
_FINE = 3e-4  # relative gap at which anything better is asked for
_STEP = 5e-4

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Candidate:
    """A plan and its time per sample."""

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
    best: Candidate | None = None
    if whole and lattice.pairs > _LARGE:
        best = _nearby(problem, masks, say)
    if options.objective == "iteration":
        outer = Outer(problem, lattice)
        best = best or attempt(outer, outer.upper_bound(), say)
        stages = IterationSearch(outer).run(best.stages).stages if best else ()
    else:
        outer = Outer(problem, lattice, best.time if best else None)
        best = search_throughput(outer, best, say)
        stages = best.stages if best else ()
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


def _nearby(problem: Problem, masks: list[int], say: Progress) -> Candidate | None:
    """A good plan of a large graph: the best along one topological order, then around it."""
    graph = problem.graph
    chain = make_lattice(graph, prefixes(graph), math.inf)
    best = search_throughput(Outer(problem, chain), None, say)
    return _around(problem, masks, best, say) if best else None


def _around(problem: Problem, masks: list[int], best: Candidate, say: Progress) -> Candidate:
    """The best plan on the downsets near those of a plan, again while that helps."""
    for _ in range(_ROUNDS):
        before = best.time
        nearest = near(problem.graph, masks, [stage.nodes for stage in best.stages], _NEAR)
        outer = Outer(problem, make_lattice(problem.graph, nearest, math.inf), before)
        best = search_throughput(outer, best, say) or best
        if best.time > before * (1 - _FINE):
            break
    return best


def search_throughput(outer: Outer, best: Candidate | None, say: Progress) -> Candidate | None:
    """The plan of least time per sample on the outer programme's lattice, or `best` if better.

    A plan that is given is expected to be near the optimum: anything better is asked for first,
    then in growing steps, until the optimum is enclosed.
    """
    low = outer.lower_bound()
    if not math.isfinite(low):
        return best
    step = 1.0 if best is None else _STEP
    best = best or attempt(outer, outer.upper_bound(), say)
    if best is None:
        return None
    limit = _next_limit(low, best.time) if step == 1.0 else strictly_below(best.time)
    while best.time > low:
        found = attempt(outer, limit, say)
        if found is not None:
            best, step = found, min(1.0, 4 * step)
        elif limit >= strictly_below(best.time):
            return best
        else:
            low, step = limit, 1.0
        limit = max(_next_limit(low, best.time), best.time * (1 - step))
    return best


def _next_limit(low: float, high: float) -> float:
    """What to ask for next when the optimum is in (low, high]."""
    if high - low <= _FINE * high:
        return strictly_below(high)
    return math.sqrt(low * high) if low > 0 and high > 2 * low else (low + high) / 2


def attempt(outer: Outer, limit: float, say: Progress) -> Candidate | None:
    """A plan within `limit` per sample, if the lattice has one."""
    stages = outer.check(limit)
    if stages is None:
        say(f"no plan within {limit:.9g} per sample")
        return None
    found = evaluate(outer.problem, stages).time_per_sample
    say(f"a plan with {found:.9g} per sample")
    return Candidate(tuple(stages), found)


def _silent(_: str) -> None:
    pass
