"""Reading layer graphs: what is accepted, and that every fault is reported with its place."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from partir.partir_dialect.errors import PartirError
from partir.searcher.piper import LayerGraphError, PlanOptions, parse_layer_graph, plan
from partir.searcher.piper import read_layer_graph as read


def option(name: str = "vanilla", **more: object) -> dict[str, object]:
    made: dict[str, object] = {
        "id": name,
        "timePerSample": 1.5,
        "parameterSize": 8.0,
        "memoryUsageA": 2.0,
        "memoryUsageB": 1.0,
        "syncTimeFw": {},
        "syncTimeBw": {},
    }
    return {**made, **more}


def graph() -> dict[str, Any]:
    """Three nodes in a row, 7 -> 3 -> 5."""
    return {
        "maxDevices": 2,
        "maxMemoryPerDevice": 100.0,
        "bandwidth": 10.0,
        "mbsInBatch": 4,
        "nodes": [
            {"id": 7, "name": "in", "TMPCs": {"1": [option()]}},
            {"id": 3, "name": "mid", "TMPCs": {"1": [option(), option("recomp")]}},
            {"id": 5, "name": "out", "TMPCs": {"1": [option()], "2": [option()]}},
        ],
        "edges": [
            {"sourceId": 7, "destId": 3, "communicationCost": 1.0},
            {"sourceId": 3, "destId": 5, "communicationCost": 2.0},
        ],
    }


def faults_of(value: object) -> list[tuple[str, str]]:
    """Path and message of every fault; each must have a span that points into the text."""
    text = json.dumps(value, indent=1)
    with pytest.raises(LayerGraphError) as caught:
        parse_layer_graph(text, "layers.json")
    lines = text.splitlines()
    for fault in caught.value.faults:
        assert fault.span is not None
        assert fault.span.file == "layers.json"
        assert fault.span.text == lines[fault.span.line - 1]
    from partir.searcher.piper.model import path_text

    return [(path_text(fault.path), fault.message) for fault in caught.value.faults]


def changed(path: list[str | int], value: object) -> dict[str, Any]:
    made = graph()
    place: Any = made
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return made


def test_a_graph_is_read_with_its_header() -> None:
    made = parse_layer_graph(json.dumps(graph()))
    assert [(node.id, node.name, sorted(node.options)) for node in made.nodes] == [
        (7, "in", [1]),
        (3, "mid", [1]),
        (5, "out", [1, 2]),
    ]
    assert [(e.source, e.target, e.bytes) for e in made.edges] == [(7, 3, 1.0), (3, 5, 2.0)]
    assert (made.devices, made.memory, made.bandwidth, made.microbatches) == (2, 100.0, 10.0, 4)
    assert made.order() == [7, 3, 5]
    first = made.nodes[1].options[1][0]
    assert (first.id, first.time, first.parameters) == ("vanilla", 1.5, 8.0)
    assert (first.memory_a, first.memory_b) == (2.0, 1.0)


def test_the_older_name_of_the_batch_is_accepted_and_a_contradiction_is_not() -> None:
    old = graph()
    del old["mbsInBatch"]
    old["maxBatchSize"] = 6
    assert parse_layer_graph(json.dumps(old)).microbatches == 6
    both = changed(["maxBatchSize"], 6)
    assert faults_of(both) == [("maxBatchSize", "differs from mbsInBatch (4), got: 6")]


def test_numbers_of_the_command_win_over_the_header_and_must_be_known() -> None:
    text = graph()
    del text["bandwidth"]
    made = parse_layer_graph(json.dumps(text))
    with pytest.raises(LayerGraphError, match="bandwidth: is given neither"):
        plan(made)
    found = plan(made, PlanOptions(devices=1, bandwidth=5.0))
    assert found.time_per_sample == 4.5
    with pytest.raises(LayerGraphError) as caught:
        plan(made, PlanOptions(devices=0, memory=-1.0, bandwidth=5.0))
    assert [fault.path for fault in caught.value.faults] == [("devices",), ("memory",)]


@pytest.mark.parametrize(
    ("path", "value", "where", "message"),
    [
        (["edges", 1, "destId"], 7, "edges[1]", "the graph has a cycle: 7 -> 3 -> 7"),
        (["edges", 1, "destId"], 3, "edges[1]", "the graph has a cycle: 3 -> 3"),
        (["edges", 1, "destId"], 6, "edges[1].destId", "no node has this id, got: 6"),
        (["edges", 1, "sourceId"], 6, "edges[1].sourceId", "no node has this id, got: 6"),
        (["edges", 1, "sourceId"], "3", "edges[1].sourceId", 'a whole number, got: "3"'),
        (["edges", 1, "communicationCost"], -1, "edges[1].communicationCost", "got: -1"),
        (["edges", 1, "communicationCost"], None, "edges[1].communicationCost", "got: null"),
        (["edges", 1, "communicationCost"], float("nan"), "edges[1].communicationCost", "nan"),
        (["edges", 1], [3, 5], "edges[1]", "must be an object, got: [3, 5]"),
        (["edges"], {}, "edges", "must be an array, got: {}"),
        (["nodes"], [], "nodes", "at least one node, got: 0"),
        (["nodes", 1, "id"], 7, "nodes[1].id", "already that of nodes[0], got: 7"),
        (["nodes", 1, "id"], True, "nodes[1].id", "a whole number, got: true"),
        (["nodes", 1, "name"], 4, "nodes[1].name", "must be a string, got: 4"),
        (["nodes", 1, "TMPCs"], {}, "nodes[1].TMPCs", "node 3 has no options"),
        (["nodes", 1, "TMPCs", "1"], [], "nodes[1].TMPCs.1", "no options for degree 1"),
        (["nodes", 1, "TMPCs", "0"], [option()], "nodes[1].TMPCs.0", "got: 0"),
        (["nodes", 1, "TMPCs", "two"], [option()], "nodes[1].TMPCs.two", "got: two"),
        (["nodes", 1, "TMPCs", "1"], [option()] * 2, "nodes[1].TMPCs.1", "2 options share an id"),
        (["nodes", 0, "TMPCs", "1", 0, "timePerSample"], -2.5,
         "nodes[0].TMPCs.1[0].timePerSample", "at least 0, got: -2.5"),
        (["nodes", 0, "TMPCs", "1", 0, "memoryUsageA"], "big",
         "nodes[0].TMPCs.1[0].memoryUsageA", 'must be a number, got: "big"'),
        (["nodes", 0, "TMPCs", "1", 0, "syncTimeBw"], {"3": -1},
         "nodes[0].TMPCs.1[0].syncTimeBw.3", "at least 0, got: -1"),
        (["nodes", 0, "TMPCs", "1", 0, "syncTimeBw"], {"99": 1},
         "nodes[0].TMPCs.1[0].syncTimeBw.99", "no node has this id, got: 99"),
        (["nodes", 0, "TMPCs", "1", 0, "syncTimeFw"], {"3": 1},
         "nodes[0].TMPCs.1[0].syncTimeFw.3", "not a predecessor of node 7, got: 3"),
        (["maxDevices"], 0, "maxDevices", "a whole number of at least 1, got: 0"),
        (["maxDevices"], 2.5, "maxDevices", "a whole number of at least 1, got: 2.5"),
        (["bandwidth"], "fast", "bandwidth", 'must be a number, got: "fast"'),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_path(
    path: list[str | int], value: object, where: str, message: str
) -> None:
    found = faults_of(changed(path, value))
    assert (where in [place for place, _ in found]) and any(message in text for _, text in found)


def test_all_faults_are_listed_in_the_order_of_the_text() -> None:
    made = graph()
    made["bandwidth"] = -1
    made["nodes"][0]["TMPCs"]["1"][0]["timePerSample"] = -1
    del made["nodes"][2]["TMPCs"]
    made["edges"].append(copy.deepcopy(made["edges"][0]))
    made["edges"].append({"sourceId": 5, "destId": 8, "communicationCost": 0})
    assert [place for place, _ in faults_of(made)] == [
        "bandwidth",
        "nodes[0].TMPCs.1[0].timePerSample",
        "nodes[2]",
        "edges[2]",
        "edges[3].destId",
    ]


def test_the_error_prints_every_fault_with_a_caret() -> None:
    text = '{"nodes": [{"id": 1, "TMPCs": {}}], "edges": 3}'
    with pytest.raises(PartirError) as caught:
        parse_layer_graph(text, "g.json")
    assert caught.value.exit_status == 2
    assert caught.value.render().splitlines() == [
        "g.json:1:31: error: nodes[0].TMPCs: node 1 has no options",
        text,
        " " * 30 + "^",
        "g.json:1:46: error: edges: must be an array, got: 3",
        text,
        " " * 45 + "^",
        "2 faults",
    ]


@pytest.mark.parametrize("cut", [1, 30, 200, 700])
def test_a_truncated_text_is_located(cut: int) -> None:
    text = json.dumps(graph(), indent=1)[:-cut]
    with pytest.raises(LayerGraphError, match="not valid JSON") as caught:
        parse_layer_graph(text, "g.json")
    span = caught.value.span
    assert span is not None
    assert 1 <= span.line <= text.count("\n") + 1


@pytest.mark.parametrize("text", ["", "[]", "3", '"a"', "null", "[" * 100_000, "{]", '{"a" 1}'])
def test_a_text_that_is_no_graph_is_refused(text: str) -> None:
    with pytest.raises(LayerGraphError):
        parse_layer_graph(text)


def test_a_key_given_twice_is_a_fault() -> None:
    text = json.dumps(graph()).replace('"bandwidth"', '"maxDevices": 3, "bandwidth"', 1)
    with pytest.raises(LayerGraphError, match="the key is given twice, got: maxDevices") as caught:
        parse_layer_graph(text)
    assert caught.value.span is not None
    assert caught.value.span.column == text.rindex('"maxDevices"') + 1


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LayerGraphError, match="No such file"):
        read(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(LayerGraphError, match="not UTF-8"):
        read(tmp_path / "bytes.json")
