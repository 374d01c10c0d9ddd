"""Tactics on real programs: roles as stated with them, pairs of weights as in the literature."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from partir.engine.build import build, main_of
from partir.engine.graph import Graph, pair
from partir.engine.roles import Roles, donations, find_roles
from partir.engine.session import Session
from partir.partir_dialect.mesh import Mesh
from partir.partir_dialect.reader import read_module
from partir.passes.prepare import prepare
from partir.tactics import Run, parse, run

LARGE = {"t5b_train", "t_train_L32"}


@cache
def program(folder: Path, name: str) -> tuple[Graph, Roles]:
    module = read_module((folder / f"{name}.mlir").read_text(), name)
    prepare(module)
    graph, _ = build(module)
    roles = find_roles(graph, donations(main_of(module)))
    pair(graph, dict(roles.pairs))
    return graph, roles


def applied(folder: Path, name: str, text: str, **mesh: int) -> tuple[Session, Run]:
    graph, roles = program(folder, name)
    session = Session(graph, Mesh(**mesh))
    return session, run(parse(text), session, roles=roles)


def counts(session: Session) -> dict[str, int]:
    return {kind: row["count"] for kind, row in session.plan().counts().items() if row["count"]}


def test_roles_and_pairs_are_those_of_the_programs(programs: Path):
    """`role` and `alias` of every argument of every program, `op_*` included."""
    seen = 0
    for path in sorted(programs.glob("*.json")):
        if path.stem in LARGE or path.stem == "baseline":
            continue
        facts = json.loads(path.read_text())
        graph, roles = program(programs, path.stem)
        named = [argument.name for argument in graph.arguments]
        assert dict(zip(named, roles.roles, strict=True)) == {
            name: argument["role"] for name, argument in zip(named, facts["arguments"], strict=True)
        }, path.stem
        assert roles.pairs == {
            i: argument["alias"]
            for i, argument in enumerate(facts["arguments"])
            if argument["alias"] is not None
        }, path.stem
        for parameter, states in roles.states.items():
            tail = graph.arguments[parameter].name.removeprefix("params/")
            assert [graph.arguments[i].name.endswith("/" + tail) for i in states] == [True] * len(
                states
            )
        seen += 1
    assert seen >= 40


@pytest.mark.parametrize("name", ["t_train_L2", "t_train_L4", "moe_train_L2", "llama_train_L2"])
def test_megatron_has_four_sums_a_layer_in_training(programs: Path, name: str):
    session, result = applied(
        programs, name, "megatron(axis=model)\nexpect all_reduce.count == 4 * layers", model=2
    )
    assert not result.failed
    assert counts(session) == {"all_reduce": 4 * int(name[-1])}


@pytest.mark.parametrize("name", ["it_decode_L2", "it_decode_eos_L2", "it_decode_mq_L2"])
def test_megatron_has_two_sums_a_layer_in_inference(programs: Path, name: str):
    """Two layers, eight tokens where the number of steps is known."""
    session, _ = applied(programs, name, "megatron(axis=model)", model=2)
    steps = 1 if "eos" in name else 8
    assert counts(session) == {"all_reduce": 2 * 2 * steps}


def test_fewer_key_heads_than_devices_need_no_gather(programs: Path):
    """llama on four devices with two key heads: the axis is split into heads and repeats. Beside
    the four sums a layer, two for the gradients of keys and values over the repeats, and one for
    the input gradients, which are now partial over different axes (keys and values over the heads,
    queries over both)."""
    session, _ = applied(programs, "llama_train_L2", "megatron(axis=model)", model=4)
    assert counts(session) == {"all_reduce": 2 * (4 + 2 + 1)}
    names = {argument.name: argument.value for argument in session.graph.arguments}
    for name, local in (("wq", (64, 2, 16)), ("wk", (64, 1, 16)), ("wv", (64, 1, 16))):
        assert session.local_shape(names[f"params/layer_0/{name}"]) == local
    assert session.local_shape(names["params/layer_0/wo"]) == (2, 16, 64)


def test_columns_by_name(programs: Path):
    _, result = applied(programs, "t_train_L2", "megatron(axis=model)", model=2)
    assert [asked.text for asked in result.steps[0].asked] == [
        f"tile params/layer_{i}/{name} dim={dim} axis=model"
        for i in range(2)
        for name, dim in (("wqkv", 2), ("w_up", 1))
    ]
    _, result = applied(programs, "llama_train_L2", "megatron(axis=model)", model=2)
    assert [asked.name for asked in result.steps[0].asked] == [
        f"params/layer_{i}/{name}"
        for i in range(2)
        for name in ("wq", "wk", "wv", "w_gate", "w_up")
    ]


def test_zero_before_batch_is_a_known_trap(programs: Path):
    """27 matrices are asked for (nine, each with two moments); 57 arguments are captured in all."""
    _, result = applied(programs, "t_train_L2", "zero3(axis=batch)\nbatch(axis=batch)", batch=4)
    zero = result.steps[0]
    assert len(zero.done) == 27
    assert len(zero.inferred) == 57 - 27
    assert "write batch(axis=batch) before it" in zero.warnings[0].message


@pytest.mark.parametrize(
    ("name", "layers"),
    [("t_train_L4", 4), ("llama_train_L2", 2), ("llama_train_scan_L8", 8), ("mlp_train", 3)],
)
def test_layers_are_counted(programs: Path, name: str, layers: int):
    _, result = applied(programs, name, f"expect layers == {layers}", batch=2)
    assert not result.failed
