"""The planner against brute force over all plans of small random graphs."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pytest

from partir.searcher.piper import (
    Edge,
    LayerGraph,
    LayerNode,
    LayerOption,
    PlanOptions,
    Problem,
    evaluate,
    plan,
)


def random_graph(draw: random.Random) -> LayerGraph:
    """At most 7 nodes in a random id order; options, weights and sync of every kind."""
    count = draw.randint(1, 7)
    ids = draw.sample(range(20), count)
    density = draw.choice([0.2, 0.4, 0.8])
    pairs = [(u, v) for i, u in enumerate(ids) for v in ids[i + 1 :] if draw.random() < density]
    degrees = draw.choice([(1,), (1, 2), (1, 2, 4), (2, 3)])
    same_weights, same_sync = draw.random() < 0.5, draw.random() < 0.6

    def node(v: int) -> LayerNode:
        kept = [t for t in degrees if t == degrees[0] or draw.random() < 0.8]
        table: dict[int, tuple[LayerOption, ...]] = {}
        for t in kept:
            weights = float(draw.randint(0, 400))
            before = {u: float(draw.randint(0, 9)) for u, w in pairs if w == v}
            after = {w: float(draw.randint(0, 9)) for u, w in pairs if u == v}
            options: list[LayerOption] = []
            for o in range(draw.randint(1, 3)):
                if not same_weights:
                    weights = float(draw.randint(0, 400))
                if not same_sync:
                    before = {u: float(draw.randint(0, 9)) for u in before}
                    after = {w: float(draw.randint(0, 9)) for w in after}
                time = draw.choice([draw.uniform(0, 8), float(draw.randint(0, 4))])
                sizes = float(draw.randint(0, 20)), float(draw.randint(0, 30))
                options.append(
                    LayerOption(f"o{o}", time, weights, *sizes, dict(before), dict(after))
                )
            table[t] = tuple(options)
        return LayerNode(v, f"n{v}", table)

    nodes = [node(v) for v in ids]
    draw.shuffle(nodes)
    edges = tuple(Edge(u, v, float(draw.randint(0, 12))) for u, v in pairs)
    return LayerGraph(tuple(nodes), edges)


class Brute:
    """All plans of a problem by the definition: sets of nodes, products of options, no bounds."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        nodes = problem.graph.nodes
        self.position = {node.id: i for i, node in enumerate(nodes)}
        self.needs = [0] * len(nodes)
        for edge in problem.graph.edges:
            self.needs[self.position[edge.target]] |= 1 << self.position[edge.source]
        self.degrees = {t for node in nodes for t in node.options}
        self.whole = (1 << len(nodes)) - 1
        self.selections = lru_cache(None)(self._selections)
        self.stage_time = lru_cache(None)(self._stage_time)
        self.throughput = lru_cache(None)(self._throughput)
        self.front = lru_cache(None)(self._front)

    def is_downset(self, mask: int) -> bool:
        return all(not mask >> v & 1 or not need & ~mask for v, need in enumerate(self.needs))

    def _selections(self, stage: int, t: int) -> np.ndarray | None:
        """A row for each choice of options: time at d = 1 with traffic, and sums of w, a, b."""
        rows = np.zeros((1, 4))
        p = self.problem
        one_host = p.host_devices is not None and p.devices <= p.host_devices
        bandwidth = p.host_bandwidth if one_host else p.bandwidth
        for v, node in enumerate(p.graph.nodes):
            if not stage >> v & 1:
                continue
            if t not in node.options:
                return None
            mine: list[list[float]] = []
            for o in node.options[t]:
                moved = 0.0
                for edge in p.graph.edges:
                    source, target = self.position[edge.source], self.position[edge.target]
                    if target == v and not stage >> source & 1:
                        moved += 2 * (edge.bytes + o.sync_forward.get(edge.source, 0.0))
                    if source == v and not stage >> target & 1:
                        moved += 2 * (edge.bytes + o.sync_backward.get(edge.target, 0.0))
                mine.append([o.time + moved / bandwidth, o.parameters, o.memory_a, o.memory_b])
            rows = (rows[:, None, :] + np.array(mine)[None, :, :]).reshape(-1, 4)
        return rows

    def _stage_time(self, stage: int, t: int, d: int, in_flight: int) -> float:
        rows = self.selections(stage, t)
        if rows is None:
            return math.inf
        p = self.problem
        sync = 4 * (d - 1) / (d * p.microbatches * p.bandwidth)
        if p.host_devices is not None:
            inside = min(d, max(1, p.host_devices // t))
            hosts = d / inside
            sync = 4 / p.microbatches * (inside - 1) / inside / p.host_bandwidth
            sync += 4 / p.microbatches * (hosts - 1) / hosts / inside / p.bandwidth
        times = rows[:, 0] / d + rows[:, 1] * sync
        fits = rows[:, 2] * in_flight + rows[:, 3] <= p.memory
        return float(times[fits].min()) if fits.any() else math.inf

    def last_stages(
        self, upper: int, devices: int, later: int
    ) -> Iterator[tuple[int, int, int, float]]:
        """What is left of `upper`, t, d and time of every last stage it could have."""
        p = self.problem
        for left in range(upper):
            if left & ~upper or not self.is_downset(left):
                continue
            for t in self.degrees:
                for d in range(1, devices // t + 1):
                    if p.microbatches % d or later + d > p.microbatches:
                        continue
                    flight = math.ceil((later + d) / d)
                    if p.schedule == "gpipe":
                        flight = p.microbatches // d
                    time = self.stage_time(upper & ~left, t, d, flight)
                    if time < math.inf:
                        yield left, t, d, time

    def _throughput(self, upper: int, devices: int, later: int) -> float:
        """Least possible time of the slowest stage, with `later` replicas after `upper`."""
        if not upper:
            return 0.0
        return min(
            (
                max(time, self.throughput(left, devices - t * d, later + d))
                for left, t, d, time in self.last_stages(upper, devices, later)
            ),
            default=math.inf,
        )

    def _front(self, upper: int, devices: int, later: int) -> list[tuple[float, float]]:
        """The Pareto set of (max (N - d)·T, Σ d·T) over all plans of `upper`."""
        if not upper:
            return [(0.0, 0.0)]
        found = [
            (max(steady, (self.problem.microbatches - d) * time), fill + d * time)
            for left, t, d, time in self.last_stages(upper, devices, later)
            for steady, fill in self.front(left, devices - t * d, later + d)
        ]
        kept: list[tuple[float, float]] = []
        for steady, fill in sorted(found):
            if not kept or fill < kept[-1][1]:
                kept.append((steady, fill))
        return kept

    def iteration(self) -> float:
        """Least possible iteration time."""
        front = self.front(self.whole, self.problem.devices, 0)
        return min((steady + fill for steady, fill in front), default=math.inf)


def random_options(draw: random.Random, **more: object) -> PlanOptions:
    hosts = draw.choice([None, None, (2, 90.0), (4, 50.0), (8, 200.0)])
    return PlanOptions(
        devices=draw.randint(1, 6),
        memory=float(draw.choice([40, 90, 150, 250])),
        bandwidth=float(draw.choice([5, 30, 1000])),
        microbatches=draw.choice([1, 4, 6, 12]),
        host_devices=hosts and hosts[0],
        host_bandwidth=hosts and hosts[1],
        **more,
    )


@pytest.mark.parametrize("seed", range(20))
def test_throughput_is_that_of_brute_force_over_all_plans(seed: int) -> None:
    draw = random.Random(seed)
    feasible = 0
    for _ in range(10):
        graph = random_graph(draw)
        options = random_options(draw, schedule=draw.choice(["1f1b", "1f1b", "gpipe"]))
        problem = Problem.of(graph, options)
        brute = Brute(problem)
        best = brute.throughput(brute.whole, problem.devices, 0)
        found = plan(graph, options)
        assert found.feasible == (best < math.inf)
        if found.feasible:
            feasible += 1
            judged = evaluate(problem, found.stages)
            assert not judged.violations
            assert judged.time_per_sample == pytest.approx(best, rel=1e-10, abs=1e-12)
            assert found.time_per_sample == judged.time_per_sample
    assert feasible > 0


@pytest.mark.parametrize("seed", range(6))
def test_iteration_time_is_that_of_brute_force_over_all_plans(seed: int) -> None:
    draw = random.Random(1000 + seed)
    for _ in range(5):
        graph = random_graph(draw)
        schedule = draw.choice(["1f1b", "gpipe"])
        options = random_options(draw, schedule=schedule, objective="iteration", tolerance=1e-9)
        problem = Problem.of(graph, options)
        best = Brute(problem).iteration()
        found = plan(graph, options)
        assert found.feasible == (best < math.inf)
        if found.feasible:
            assert not evaluate(problem, found.stages).violations
            assert found.iteration_time == pytest.approx(best, rel=1e-8, abs=1e-12)
