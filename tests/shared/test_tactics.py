"""Tactics on real programs: roles as stated with them, pairs of weights as in the literature."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

import partir
from partir.engine.build import build, main_of
from partir.engine.graph import Graph, pair
from partir.engine.roles import Roles, donations, find_roles
from partir.engine.session import Session
from partir.partir_dialect.mesh import Mesh
from partir.partir_dialect.reader import read_module
from partir.passes.prepare import prepare
from partir.tactics import Run, parse, run
from partir.tactics.attention import attentions
from partir.tactics.structure import Structure

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


# --- the library, with counts derived -------------------------------------------------------------


def ring(session: Session, kind: str) -> int:
    return session.plan().counts()[kind]["ring_bytes"]


def sequence_pairs(folder: Path, name: str) -> tuple[Session, Session]:
    before, _ = applied(folder, name, "megatron(axis=model)", model=2)
    after, result = applied(folder, name, "megatron(axis=model)\nsequence(axis=model)", model=2)
    assert not any(step.warnings for step in result.steps)
    return before, after


def test_sequence_makes_pairs_of_scatter_and_gather_with_the_same_ring_bytes(programs: Path):
    """llama: every all_reduce of Megatron becomes one reduce_scatter and one all_gather. New are
    the sums over parts of the sequence: the loss, the scale of each norm (two a layer and the last
    one), the two tables (lookup and head)."""
    before, after = sequence_pairs(programs, "llama_train_L2")
    assert counts(after) == {
        "reduce_scatter": counts(before)["all_reduce"],
        "all_gather": counts(before)["all_reduce"],
        "all_reduce": 1 + (2 * 2 + 1) + 2,
    }
    assert ring(after, "reduce_scatter") + ring(after, "all_gather") == ring(before, "all_reduce")


def test_sequence_on_a_transformer_with_layer_norm(programs: Path):
    """As above; a layer norm has a scale and a bias, the last has neither, and the table is tied.
    One small gather is of the positions, which the forward pass needs whole and in parts."""
    before, after = sequence_pairs(programs, "t_train_L2")
    sums = counts(before)["all_reduce"]
    assert counts(after)["reduce_scatter"] == sums
    assert counts(after)["all_reduce"] == 1 + 2 * 2 * 2 + 1
    pairs = ring(after, "reduce_scatter") + ring(after, "all_gather")
    positions = 32 * 4 // 2
    assert pairs - ring(before, "all_reduce") in (0, positions)


def test_experts_on_the_batch_axis_exchange_tokens(programs: Path):
    """GShard: two exchanges forward and two backward a layer, and the experts' four weights have no
    sum over the axis, which `batch` alone gives them."""
    alone, _ = applied(programs, "moe_train_L2", "batch(axis=batch)", batch=4)
    session, result = applied(
        programs, "moe_train_L2", "expert(axis=batch)\nbatch(axis=batch)", batch=4
    )
    assert counts(session) == {
        "all_to_all": 2 * 4,
        "all_reduce": counts(alone)["all_reduce"] - 2 * 2,
    }
    assert [a.text for a in result.steps[0].asked if a.action == "tile"] == [
        f"tile params/layer_{i}/{name} dim=0 axis=batch"
        for i in range(2)
        for name in ("w_up", "w_down")
    ]


def test_edges_of_a_graph_net(programs: Path):
    """Three steps of messages: a sum at the nodes forward, one backward; and six gradients (two
    weights, two biases, scale and bias of the norm) of each of the four edge networks."""
    session, _ = applied(programs, "gns_train", "edges(axis=batch)", batch=4)
    assert counts(session) == {"all_reduce": 3 + 3 + 4 * 6}


def test_gathers_of_zero3_can_be_shared(programs: Path):
    """Per use: forward and backward each gather a matrix, the tied table three times (lookup,
    logits, and the gradient of the logits' input). Shared: one gather each."""
    once, _ = applied(programs, "t_train_L2", "batch(batch)\nzero3(batch, once=true)", batch=4)
    each, _ = applied(programs, "t_train_L2", "batch(batch)\nzero3(batch)", batch=4)
    matrices = 4 * 2
    assert counts(once)["all_gather"] == matrices + 1
    assert counts(each)["all_gather"] == 2 * matrices + 3
    assert {k: v for k, v in counts(once).items() if k != "all_gather"} == {
        k: v for k, v in counts(each).items() if k != "all_gather"
    }


def test_small_parameters_stay_whole(programs: Path):
    text = "batch(batch)\nreplicate_small(batch, below=1KiB)\nzero3(batch, vectors=true)"
    session, result = applied(programs, "t_train_L2", text, batch=4)
    assert not any(step.warnings for step in result.steps)
    for argument in session.graph.arguments:
        if argument.name.startswith("params/"):
            small = session.graph.bytes_of(argument.value) < 1024
            whole = session.local_shape(argument.value) == session.graph.shapes[argument.value]
            assert small == whole, argument.name


def test_context_gathers_keys_and_values(programs: Path):
    """Two gathers a layer, of keys and values, which the backward pass shares; their gradients are
    scattered (llama: two a layer; the fused weight of t_train makes them one); and every parameter
    has a sum over the axis, and so has the loss."""
    for name, scattered, parameters in (("llama_train_L2", 2 * 2, 21), ("t_train_L2", 2, 19)):
        session, result = applied(programs, name, "context(axis=seq)", seq=4)
        assert not result.steps[0].warnings
        assert counts(session) == {
            "all_gather": 2 * 2,
            "reduce_scatter": scattered,
            "all_reduce": parameters + 1,
        }


def test_attention_is_found_and_routing_is_not(programs: Path):
    for name, wanted in (("moe_train_L2", 2), ("unet_train", 1), ("gns_train", 0)):
        graph, roles = program(programs, name)
        assert len(attentions(Structure(graph, roles))) == wanted, name


def test_images_tiled_in_space_exchange_edges(programs: Path):
    """ResNet with windows of three and SAME padding: both neighbours at stride 1 (four times), one
    at stride 2 (the pool and the first convolution of two stages), both for the stem of seven; the
    pooling at the end is one sum."""
    session, result = applied(programs, "resnet_infer", "spatial(axis=space)", space=2)
    assert [asked.text for asked in result.steps[0].asked] == ["tile image dim=1 axis=space"]
    assert counts(session) == {"collective_permute": 4 * 2 + 3 * 1 + 2, "all_reduce": 1}


def test_multiquery_exchanges_heads_and_batch(programs: Path):
    """Two exchanges a layer and token; Megatron's two sums are scattered onto the batch and
    gathered again, because the residual stream follows the cache."""
    session, _ = applied(programs, "it_decode_mq_L2", "multiquery(axis=model)", model=4)
    layers, tokens = 2, 8
    assert counts(session) == dict.fromkeys(
        ("all_to_all", "reduce_scatter", "all_gather"), 2 * layers * tokens
    )
    cache = session.graph.argument("cache/layer_0/k").value
    assert session.local_shape(cache) == (6, 32, 16)


def test_the_vocabulary_is_tiled_as_megatron_does(programs: Path):
    """Five sums: what is looked up; of the loss the picked logit, the largest and the sum of
    exponentials; and the gradient of the last activations. With tied or separate tables alike."""
    for name in ("t_train_L2", "llama_train_L2"):
        session, _ = applied(programs, name, "embedding(axis=model)", model=2)
        assert counts(session) == {"all_reduce": 5}, name
        both, _ = applied(programs, name, "megatron(axis=model, vocab=true)", model=2)
        assert counts(both) == {"all_reduce": 4 * 2 + 5}, name


# --- the how-to page ------------------------------------------------------------------------------


def howto(kind: str) -> str:
    page = (Path(__file__).resolve().parents[2] / "docs" / "tactics.md").read_text()
    return page.split(f"```tactic {kind}\n")[1].split("```")[0]


def test_the_how_to_shards_a_diffusion_model(programs: Path):
    session, result = applied(programs, "unet_train", howto("howto"), batch=8)
    assert not result.failed
    assert not any(step.warnings for step in result.steps)
    assert session.tiled_dim(session.graph.argument("batch/image").value, "batch") == 0
    whole = applied(programs, "unet_train", "batch(axis=batch)", batch=8)[0]
    assert counts(session)["all_gather"] > 0
    assert session.plan().argument_bytes() < whole.plan().argument_bytes() / 4


def test_the_how_to_defines_a_tactic(programs: Path):
    session, result = applied(programs, "llama_train_L2", howto("howto-llama"), batch=4, model=2)
    assert [asked.name for asked in result.steps[1].asked] == [
        f"params/layer_{i}/{name}" for i in range(2) for name in ("w_gate", "w_up")
    ]
    assert counts(session)["all_reduce"] > 0


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "mesh", "lines"),
    [
        ("moe_train_L2", {"batch": 2}, ["expert(axis=batch)", "batch(axis=batch)"]),
        ("gns_train", {"batch": 4}, ["edges(axis=batch)", "zero3(axis=batch)"]),
        ("it_decode_mq_L2", {"model": 2}, ["multiquery(axis=model)"]),
        ("resnet_infer", {"space": 4}, ["spatial(axis=space)"]),
        ("llama_train_L2", {"model": 4}, ["megatron(axis=model)", "sequence(axis=model)"]),
        ("llama_train_L2", {"seq": 2}, ["context(axis=seq)", "embedding(axis=seq)"]),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_partitioned_is_equal(programs: Path, name: str, mesh: dict[str, int], lines: list[str]):
    program_ = partir.read(programs / f"{name}.mlir")
    partir.partition(program_, partir.Mesh(**mesh), lines).verify()


# --- without names --------------------------------------------------------------------------------


def without_locations(text: str) -> str:
    """The module as printed without debug information: arguments are %arg0 … and nothing more."""
    kept: list[str] = []
    at = 0
    while (start := text.find(" loc(", at)) >= 0:
        kept.append(text[at:start])
        at = start + len(" loc(")
        depth, quoted = 1, False
        while depth:
            quoted ^= text[at] == '"'
            if not quoted:
                depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
    kept.append(text[at:])
    return re.sub(r"(?m)^#loc.*\n", "", "".join(kept))


@pytest.mark.parametrize("results_named", [True, False])
@pytest.mark.parametrize(
    "name",
    [
        "mlp_train",
        "t_train_L2",
        "llama_train_L2",
        "moe_train_L2",
        "gns_train",
        "llama_train_scan_L8",
    ],
)
def test_roles_without_argument_names(programs: Path, name: str, results_named: bool):
    """By use alone: parameters are what the loss depends on, and each finds its two moments."""
    text = without_locations((programs / f"{name}.mlir").read_text())
    if not results_named:
        text = re.sub(r"jax\.result_info", "jax.nothing", text)
    module = read_module(text, name)
    prepare(module)
    graph, _ = build(module)
    assert graph.arguments[0].name == "arg0"
    roles = find_roles(graph, donations(main_of(module)))
    facts = json.loads((programs / f"{name}.json").read_text())["arguments"]
    assert list(roles.roles) == [argument["role"] for argument in facts]
    assert roles.pairs == {i: a["alias"] for i, a in enumerate(facts) if a["alias"] is not None}
    tail = {i: argument["name"].partition("[")[2] for i, argument in enumerate(facts)}
    for parameter, states in roles.states.items():
        assert states
        assert all(tail[state].endswith(tail[parameter]) for state in states)
