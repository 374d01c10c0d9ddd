"""Which names a pattern means."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partir.partir_dialect.errors import TacticError
from partir.partir_dialect.names import flat_path
from partir.tactics.names import flat_pattern, matching, nothing_matches
from partir.tactics.world import count_layers, scope_of

NAMES = [
    "params/embed",
    "params/layer_0/wq",
    "params/layer_0/wk",
    "params/layer_0/attn/wo",
    "params/layer_1/wq",
    "opt/mu/layer_0/wq",
    "batch/tokens",
    "tokens_seen",
    "result/params/embed",
]


def found(pattern: str) -> list[str]:
    return [NAMES[i] for i in matching(pattern, NAMES)]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("tokens", ["batch/tokens"]),
        ("params/embed", ["params/embed", "result/params/embed"]),
        ("/params/embed", ["params/embed"]),
        ("embed", ["params/embed", "result/params/embed"]),
        ("mbed", []),
        ("wq", ["params/layer_0/wq", "params/layer_1/wq", "opt/mu/layer_0/wq"]),
        ("layer_0/wq", ["params/layer_0/wq", "opt/mu/layer_0/wq"]),
        ("params/*/wq", ["params/layer_0/wq", "params/layer_1/wq"]),
        ("params/*/wo", []),
        ("params/**/wo", ["params/layer_0/attn/wo"]),
        ("params/**/wq", ["params/layer_0/wq", "params/layer_1/wq"]),
        ("params/**", [*NAMES[:5], "result/params/embed"]),
        ("/params/**", NAMES[:5]),
        ("params/layer_0/w[qk]", ["params/layer_0/wq", "params/layer_0/wk"]),
        ("params/layer_0/w[!q]", ["params/layer_0/wk"]),
        ("params/layer_[0-9]/wq", ["params/layer_0/wq", "params/layer_1/wq"]),
        ("layer_?/wk", ["params/layer_0/wk"]),
        ("layer_0/{wk,attn/wo}", ["params/layer_0/wk", "params/layer_0/attn/wo"]),
        ("params['layer_0']['wq']", ["params/layer_0/wq"]),
        ('params["layer_0"]["wq"]', ["params/layer_0/wq"]),
        (
            "params['layer_*']['w[qk]']",
            ["params/layer_0/wq", "params/layer_0/wk", "params/layer_1/wq"],
        ),
        ("batch['tokens']", ["batch/tokens"]),
        ("params.embed", ["params/embed", "result/params/embed"]),
        ("*", NAMES),
    ],
)
def test_patterns(pattern: str, names: list[str]):
    assert found(pattern) == names


_PART = st.text("abz_019", min_size=1, max_size=4)


@given(st.lists(_PART, min_size=1, max_size=4), st.lists(_PART, min_size=1, max_size=4))
def test_a_path_without_wildcards_matches_its_suffixes_only(path: list[str], other: list[str]):
    name, pattern = "/".join(path), "/".join(other)
    assert matching(pattern, [name]) == ([0] if path[-len(other) :] == other else [])


@given(st.lists(_PART, min_size=1, max_size=3), st.text("ab*?_0", min_size=1, max_size=4))
def test_wildcards_of_one_component_are_those_of_a_shell(path: list[str], pattern: str):
    if "**" in pattern:
        return
    wanted = fnmatch.fnmatchcase(path[-1], pattern)
    assert bool(matching(pattern, ["/".join(path)])) == wanted


@given(st.lists(_PART, min_size=1, max_size=4))
def test_both_spellings_of_a_name_are_one(path: list[str]):
    jax = "args" + "".join(f"['{part}']" for part in path)
    assert flat_path(jax) == flat_pattern(jax) == "/".join(["args", *path])


def test_a_bad_pattern_is_a_located_fault():
    with pytest.raises(TacticError, match="not closed"):
        matching("w[q", NAMES)
    with pytest.raises(TacticError, match="empty"):
        matching("", NAMES)


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("tokns", "tokens"),
        ("params/embd", "params/embed"),
        ("params['layer_0']['wkk']", "params/layer_0/wk"),
    ],
)
def test_the_nearest_name_is_offered_as_it_would_be_written(pattern: str, meant: str):
    assert matching(pattern, NAMES) == []
    error = nothing_matches(pattern, NAMES, "argument", None)
    assert error.nearest == meant
    assert matching(meant, NAMES)


def test_named_scopes_lose_the_wrappers_of_jax():
    place = "m.py:3:1 (jit(step)/transpose(jvp(layer_0))/attn/bhk,hkd->bd/dot_general)"
    assert scope_of(place) == "layer_0/attn/bhk,hkd->bd/dot_general"
    assert scope_of("m.py:3:1") == ""
    assert scope_of("m.py:3:1 (jit(main)/jit(f)/add)") == "add"


@pytest.mark.parametrize(
    ("parameters", "layers"),
    [
        ({"params/layer_0/w": (4, 4), "params/layer_1/w": (4, 4), "params/embed": (8, 4)}, 2),
        ({"params/layers/0/w1": (4,), "params/layers/1/w1": (4,), "params/layers/2/w1": (4,)}, 3),
        ({"params/w0": (4, 4), "params/w1": (4, 4), "params/w2": (4, 4), "params/b0": (4,)}, 3),
        ({"params/layers/wq": (8, 4, 4), "params/layers/wk": (8, 4), "params/head": (4,)}, 8),
        ({"params/w": (4, 4)}, 0),
        ({"params/encoder_0/block_0/w": (1,), "params/encoder_0/block_1/w": (1,)}, 2),
    ],
)
def test_how_many_layers(parameters: dict[str, tuple[int, ...]], layers: int):
    assert count_layers(list(parameters.items())) == layers
