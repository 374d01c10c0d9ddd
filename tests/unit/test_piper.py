"""The planner's parts: evaluator, knapsack, downsets, bounds, large-graph road, command."""

from __future__ import annotations

import itertools
import json
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from partir.searcher.piper import (
    Edge,
    LayerGraph,
    LayerGraphError,
    LayerNode,
    LayerOption,
    PlanOptions,
    PlanStage,
    Problem,
    baselines,
    evaluate,
    plan,
    plan_command,
)
from partir.searcher.piper import inner as inner_module
from partir.searcher.piper import planner as planner_module
from partir.searcher.piper.bounds import CoarseTable, FineTable, Ladder
from partir.searcher.piper.downsets import all_downsets, make_lattice, prefixes
from partir.searcher.piper.knapsack import Choice, solve
from partir.searcher.piper.pairs import Degree


def chain(
    times: list[float], *, recomp: bool = True, degrees: tuple[int, ...] = (1,)
) -> LayerGraph:
    """Layers in a row; the recomputing option takes 4/3 of the time and keeps 1 byte of 10."""

    def node(i: int, time: float) -> LayerNode:
        table: dict[int, tuple[LayerOption, ...]] = {}
        for t in degrees:
            plain = LayerOption("vanilla", time / t, 12.0, 10.0, 4.0)
            again = LayerOption("recomp", time / t * 4 / 3, 12.0, 1.0, 13.0)
            table[t] = (plain, again) if recomp else (plain,)
        return LayerNode(i, f"layer{i}", table)

    nodes = tuple(node(i, time) for i, time in enumerate(times))
    return LayerGraph(nodes, tuple(Edge(i, i + 1, 3.0) for i in range(len(times) - 1)))


OPTIONS = PlanOptions(devices=4, memory=1000.0, bandwidth=100.0, microbatches=8)


# The evaluator


def two_stages(graph: LayerGraph) -> list[PlanStage]:
    vanilla = {node.id: "vanilla" for node in graph.nodes}
    return [PlanStage((0,), 2, 1, {0: "vanilla"}), PlanStage((1, 2), 1, 1, {**vanilla} | {})]


def test_evaluation_of_two_stages_by_hand() -> None:
    graph = chain([3.0, 1.0, 2.0])
    problem = Problem.of(graph, OPTIONS)
    judged = evaluate(problem, two_stages(graph))
    assert judged.violations == ()
    # stage 0: 3/2 compute, one edge of 3 bytes out, 4·(2-1)·12/(2·8) bytes of gradients
    first = 3 / 2 + 2 * 3 / (2 * 100) + 4 * 12 / (2 * 8 * 100)
    second = 3.0 + 2 * 3 / 100
    assert judged.stage_times == pytest.approx((first, second), rel=1e-14)
    assert judged.time_per_sample == pytest.approx(second, rel=1e-14)
    assert judged.in_flight == (2, 1)
    assert judged.stage_memory == (2 * 10 + 4, 2 * (10 + 4))
    assert judged.devices == 3
    assert judged.iteration_time == pytest.approx(7 * second + 2 * first + second, rel=1e-14)


def test_iteration_time_of_equal_stages_is_that_of_a_pipeline() -> None:
    graph = replace(chain([2.0] * 3), edges=())
    problem = Problem.of(graph, OPTIONS)
    stages = [PlanStage((i,), 1, 1, {i: "vanilla"}) for i in range(3)]
    assert evaluate(problem, stages).iteration_time == pytest.approx((8 + 3 - 1) * 2.0)


def test_gpipe_keeps_all_microbatches_of_a_replica() -> None:
    graph = chain([3.0, 1.0, 2.0])
    judged = evaluate(Problem.of(graph, replace(OPTIONS, schedule="gpipe")), two_stages(graph))
    assert judged.in_flight == (4, 8)
    assert judged.stage_memory == (4 * 10 + 4, 2 * (8 * 10 + 4))


def test_gradients_in_hosts_agree_with_flat_ones_at_equal_bandwidth() -> None:
    graph = chain([1.0], recomp=False)
    flat = Problem.of(graph, OPTIONS)
    stage = [PlanStage((0,), 4, 1, {0: "vanilla"})]
    for host in (1, 2, 4, 8):
        hosts = replace(flat, host_devices=host, host_bandwidth=flat.bandwidth)
        assert evaluate(hosts, stage).time_per_sample == pytest.approx(
            evaluate(flat, stage).time_per_sample, rel=1e-14
        )
    fast = replace(flat, host_devices=2, host_bandwidth=1000.0)
    # pairs inside: (2-1)/2 at 1000; two hosts: (2-1)/2 of half the bytes at 100
    expected = 0.25 + 4 * 12 / 8 * (0.5 / 1000 + 0.25 / 100)
    assert evaluate(fast, stage).time_per_sample == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("stages", "text"),
    [
        ([((0, 1), 1, 1)], "node 2 is in no stage"),
        ([((0, 1), 1, 1), ((1, 2), 1, 1)], "node 1 is in 2 stages"),
        ([((0, 1, 2, 9), 1, 1)], "node 9 is not in the graph"),
        ([((1, 2), 1, 1), ((0,), 1, 1)], "edge 0 -> 1 runs from stage 1"),
        ([((0, 1, 2), 3, 1)], "8 microbatches do not divide by 3"),
        ([((0, 1, 2), 8, 1)], "needs 8 devices, more than 4"),
        ([((0, 1, 2), 1, 2)], "no option 'vanilla' for t=2"),
    ],
)
def test_an_invalid_plan_is_found_out(
    stages: list[tuple[tuple[int, ...], int, int]], text: str
) -> None:
    problem = Problem.of(chain([1.0, 1.0, 1.0]), OPTIONS)
    made = [PlanStage(n, d, t, dict.fromkeys(n, "vanilla")) for n, d, t in stages]
    assert text in " ".join(evaluate(problem, made).violations)


def test_too_much_memory_and_too_many_replicas_are_found_out() -> None:
    graph = chain([1.0, 1.0])
    stages = [PlanStage((i,), 2, 1, {i: "vanilla"}) for i in range(2)]
    tight = Problem.of(graph, replace(OPTIONS, memory=23.0))
    assert evaluate(tight, stages).violations == ("stage 0 needs 24.0 bytes, more than 23.0",)
    few = Problem.of(graph, replace(OPTIONS, microbatches=2))
    assert "data degrees sum to 4, more than 2" in evaluate(few, stages).violations


# The inner problem


def test_the_knapsack_is_that_of_all_selections() -> None:
    draw = random.Random(3)
    for _ in range(300):
        choices = []
        for _ in range(draw.randint(1, 5)):
            width = draw.randint(1, 4)
            costs = tuple(
                draw.choice([draw.uniform(0, 9), draw.randint(0, 9)]) for _ in range(width)
            )
            sizes = tuple(float(draw.randint(0, 12)) for _ in range(width))
            choices.append(Choice(costs, sizes, draw.randint(1, 3)))
        capacity = float(draw.randint(0, 60))
        nodes = [choice for choice in choices for _ in range(choice.count)]
        best = math.inf
        sums = {(0.0, 0.0)}
        for node in nodes:
            sums = {
                (cost + c, size + s)
                for cost, size in sums
                for c, s in zip(node.costs, node.sizes, strict=True)
            }
        best = min((cost for cost, size in sums if size <= capacity), default=math.inf)
        found = solve(choices, capacity)
        if found is None:
            assert best == math.inf
            continue
        assert found.cost == pytest.approx(best, rel=1e-12, abs=1e-12)
        assert [sum(row) for row in found.taken] == [choice.count for choice in choices]
        size = sum(
            n * s
            for row, choice in zip(found.taken, choices, strict=True)
            for n, s in zip(row, choice.sizes, strict=True)
        )
        assert size <= capacity


def test_many_equal_nodes_with_many_options_stay_quick_and_exact() -> None:
    sizes = (97.0, 53.0, 31.0, 17.0, 5.0)
    costs = (1.0, 2.3, 3.1, 5.2, 9.4)
    count, capacity = 60, 60 * 29.0
    reach = {0: 0.0}  # exact over integer sizes
    for _ in range(count):
        grown: dict[int, float] = {}
        for size, cost in reach.items():
            for c, s in zip(costs, sizes, strict=True):
                at = size + int(s)
                grown[at] = min(grown.get(at, math.inf), cost + c)
        reach = grown
    best = min(cost for size, cost in reach.items() if size <= capacity)
    found = solve([Choice(costs, sizes, count)], capacity)
    assert found is not None
    assert found.cost == pytest.approx(best, rel=1e-12)


def test_quick_bounds_hold_the_exact_value_between_them() -> None:
    draw = random.Random(5)
    tight = 0
    for _ in range(40):
        nodes = []
        for v in range(6):
            options = tuple(
                LayerOption(
                    f"o{o}", draw.uniform(0, 9), draw.randint(0, 3), draw.randint(0, 9), 2.0
                )
                for o in range(draw.randint(1, 4))
            )
            nodes.append(LayerNode(v, "", {1: options}))
        graph = LayerGraph(tuple(nodes), tuple(Edge(v, v + 1, 0.0) for v in range(5)))
        problem = Problem.of(graph, replace(OPTIONS, memory=float(draw.randint(20, 90))))
        lattice = make_lattice(graph, prefixes(graph), 1e9)
        degree = Degree(1, problem, lattice.member.astype(np.float64))
        in_flight, kappa = draw.randint(1, 3), draw.choice([0.0, 0.7])
        ladder = Ladder.of(degree, kappa, in_flight)
        lower, upper = np.array(list(itertools.combinations(range(7), 2))).T
        fine = FineTable.of(ladder, degree.count)
        coarse = CoarseTable(1, 4, lattice.size)
        coarse.make(0, degree, ladder)
        for low, high in (
            fine.bounds(lower, upper, problem.memory),
            coarse.bounds(np.zeros_like(lower), lower, upper, problem.memory),
        ):
            for i, j, least, most in zip(lower, upper, low, high, strict=True):
                choices = [
                    Choice(
                        tuple(o.time + kappa * o.parameters for o in node.options[1]),
                        tuple(o.memory_a * in_flight + o.memory_b for o in node.options[1]),
                    )
                    for node in graph.nodes[i:j]
                ]
                found = solve(choices, problem.memory)
                exact = math.inf if found is None else found.cost
                assert least <= exact * (1 + 1e-12)
                assert most >= exact * (1 - 1e-12)
                tight += least == most
    assert tight > 500


# Downsets


def test_downsets_of_two_independent_chains_are_all_pairs_of_prefixes() -> None:
    edges = (Edge(0, 1, 0.0), Edge(1, 2, 0.0), Edge(3, 4, 0.0))
    graph = replace(chain([1.0] * 5), edges=edges)
    masks = all_downsets(graph, 1e9)
    expected = {(2**a - 1) | (2**b - 1) << 3 for a in range(4) for b in range(3)}
    assert len(masks) == len(set(masks)) == 12
    assert set(masks) == expected
    lattice = make_lattice(graph, masks, 1e9)
    # C(a + 2, 2) nested pairs of prefixes of a chain of a nodes, equal ones included
    assert lattice.pairs == math.comb(5, 2) * math.comb(4, 2) - 12
    for i in range(lattice.size):
        above = set(lattice.above[lattice.start[i] : lattice.start[i + 1]].tolist())
        inside = {j for j in range(12) if masks[i] & ~masks[j] == 0 and i != j}
        assert above == inside


def test_more_memory_than_allowed_is_refused_before_the_start() -> None:
    graph = replace(chain([1.0] * 24), edges=())
    with pytest.raises(LayerGraphError, match="downsets, too many"):
        plan(graph, replace(OPTIONS, memory_limit=1e6))
    lines: list[str] = []
    with pytest.raises(LayerGraphError, match="planning would take"):
        plan(chain([1.0] * 60), replace(OPTIONS, memory_limit=1e8), progress=lines.append)
    assert lines[0].startswith("61 downsets, 1830 nested pairs, at most ")


# The whole planner


def test_more_devices_are_never_worse() -> None:
    graph = chain([3.0, 1.0, 2.0, 5.0, 4.0], degrees=(1, 2))
    times = []
    for devices in range(1, 13):
        found = plan(graph, replace(OPTIONS, devices=devices, memory=40.0))
        times.append(math.inf if found.time_per_sample is None else found.time_per_sample)
    assert times == sorted(times, reverse=True)
    assert times[0] == math.inf
    assert times[-1] < times[4] < math.inf


def wide_graph(draw: random.Random) -> LayerGraph:
    """Two chains of four with a cross edge, every number its own."""
    nodes = []
    for v in range(8):
        table: dict[int, tuple[LayerOption, ...]] = {}
        for t in (1, 2):
            time, stash = draw.uniform(1, 3) / t, float(draw.randint(5, 12))
            table[t] = (
                LayerOption("vanilla", time, 6.0, stash, 3.0),
                LayerOption("recomp", 1.3 * time, 6.0, 1.0, stash),
                LayerOption("lean", 1.5 * time, 2.0, 1.0, stash / 2),
            )
        nodes.append(LayerNode(v, "", table))
    ends = [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7), (1, 6)]
    return LayerGraph(tuple(nodes), tuple(Edge(u, v, draw.uniform(0, 9)) for u, v in ends))


def test_the_road_for_large_graphs_gives_the_same_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(11)
    cases = [
        (wide_graph(draw), replace(OPTIONS, devices=6, memory=float(draw.randint(30, 90))))
        for _ in range(12)
    ]
    usual = [plan(graph, options).time_per_sample for graph, options in cases]
    monkeypatch.setattr(inner_module, "_DENSE_BYTES", 0)
    sparse = [plan(graph, options).time_per_sample for graph, options in cases]
    monkeypatch.setattr(planner_module, "_LARGE", 0)
    monkeypatch.setattr(planner_module, "_NEAR", 12)
    large = [plan(graph, options).time_per_sample for graph, options in cases]
    assert sparse == pytest.approx(usual, rel=1e-10)
    assert large == pytest.approx(usual, rel=1e-10)
    assert len({time for time in usual if time is not None}) == 12


def test_the_same_question_has_the_same_answer() -> None:
    graph = wide_graph(random.Random(2))
    options = replace(OPTIONS, devices=6, memory=60.0)
    assert plan(graph, options).stages == plan(graph, options).stages


def test_a_time_of_zero_is_planned() -> None:
    found = plan(replace(chain([0.0, 0.0]), edges=()), replace(OPTIONS, devices=1))
    assert found.time_per_sample == 0.0


def test_baselines_are_valid_and_no_better_than_the_plan() -> None:
    graph = chain([3.0, 1.0, 2.0, 5.0, 4.0, 1.0], degrees=(1, 2))
    for memory in (30.0, 60.0, 200.0):
        options = replace(OPTIONS, memory=memory, devices=6)
        problem = Problem.of(graph, options)
        best = plan(graph, options)
        rows = {row.name: row.plan for row in baselines(graph, options)}
        assert list(rows) == ["data only", "tensor only", "equal stages", "no recomputation"]
        for other in rows.values():
            if other.time_per_sample is not None:
                assert best.time_per_sample is not None
                assert not evaluate(problem, other.stages).violations
                assert best.time_per_sample <= other.time_per_sample * (1 + 1e-10)
    ample = {row.name: row.plan.stages for row in baselines(graph, replace(OPTIONS, memory=1e6))}
    assert [(s.data_parallel, s.tensor_parallel) for s in ample["data only"]] == [(4, 1)]
    assert [(s.data_parallel, s.tensor_parallel) for s in ample["tensor only"]] == [(1, 2)]
    assert len({s.data_parallel for s in ample["equal stages"]}) == 1
    chosen = {name for s in ample["no recomputation"] for name in s.options.values()}
    assert chosen == {"vanilla"}


# The command


def layers_json(graph: LayerGraph) -> dict[str, object]:
    return {
        "mbsInBatch": 8,
        "nodes": [
            {
                "id": node.id,
                "name": node.name,
                "TMPCs": {
                    str(t): [
                        {
                            "id": o.id,
                            "timePerSample": o.time,
                            "parameterSize": o.parameters,
                            "memoryUsageA": o.memory_a,
                            "memoryUsageB": o.memory_b,
                            "syncTimeFw": dict(o.sync_forward),
                            "syncTimeBw": dict(o.sync_backward),
                        }
                        for o in options
                    ]
                    for t, options in node.options.items()
                },
            }
            for node in graph.nodes
        ],
        "edges": [
            {"sourceId": e.source, "destId": e.target, "communicationCost": e.bytes}
            for e in graph.edges
        ],
    }


def test_the_command_answers_with_status_json_and_table(tmp_path: Path) -> None:
    graph = chain([3.0, 1.0, 2.0], degrees=(1, 2))
    path = tmp_path / "layers.json"
    path.write_text(json.dumps(layers_json(graph)))
    outcome = plan_command(path, 4, 60.0, 100.0)
    result = json.loads(json.dumps(outcome.result))
    assert outcome.status == 0
    problem = Problem.of(graph, replace(OPTIONS, memory=60.0))
    stages = [
        PlanStage(
            tuple(stage["nodes"]),
            stage["data_parallel"],
            stage["tensor_parallel"],
            {int(node): name for node, name in stage["tmpc"].items()},
        )
        for stage in result["stages"]
    ]
    judged = evaluate(problem, stages)
    assert judged.violations == ()
    assert judged.time_per_sample == result["time_per_sample"]
    assert result["seconds"] >= 0
    assert [row[0] for row in outcome.rows[1:]] == [
        "piper",
        "data only",
        "tensor only",
        "equal stages",
        "no recomputation",
    ]
    assert {len(row) for row in outcome.rows} == {5}
    assert len(outcome.stage_rows) == 1 + len(stages)


def test_the_command_without_a_feasible_plan(tmp_path: Path) -> None:
    path = tmp_path / "layers.json"
    path.write_text(json.dumps(layers_json(chain([3.0, 1.0]))))
    outcome = plan_command(path, 1, 5.0, 100.0)
    assert outcome.status == 1
    assert outcome.result["stages"] == []
    assert outcome.result["time_per_sample"] is None
