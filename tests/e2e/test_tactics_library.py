"""The library on the shipped programs: what is partitioned computes the same."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import partir

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@cache
def example(name: str) -> partir.Program:
    return partir.read(EXAMPLES / f"{name}.mlir")


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        ("mlp_step", ["batch(axis=batch)", "megatron(axis=model)", "zero3(axis=batch)"]),
        ("mlp_step", ["batch(axis=batch)", "zero3(axis=batch, vectors=true)"]),
        ("mlp_step", ["batch(axis=batch)", "embedding(axis=model)"]),
        ("mlp_step", ["zero3(axis=batch)", "batch(axis=batch)"]),
        ("mlp_step", ["batch(axis=batch)", "zero3(axis=batch, once=true)"]),
        ("transformer_step", ["batch(axis=batch)", "megatron(axis=model)", "zero1(axis=batch)"]),
        ("transformer_step", ["megatron(axis=model, vocab=true)", "zero2(axis=batch)"]),
        (
            "transformer_step",
            [
                "batch(axis=batch)",
                "megatron(axis=model)",
                "sequence(axis=model)",
                "zero3(axis=batch)",
            ],
        ),
        ("transformer_step", ["batch(axis=batch)", "context(axis=model)", "zero3(axis=model)"]),
        (
            "transformer_step",
            ["replicate_small(axis=batch, below=2KiB)", "batch(axis=batch)", "zero3(axis=batch)"],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(v.split("(")[0] for v in value),
)
def test_partitioned_is_equal(program: str, lines: list[str]):
    mesh = partir.Mesh(batch=2, model=2)
    result = partir.partition(example(program), mesh, lines)
    collectives = result.report["steps"][-1]["collectives"]
    assert sum(kind["count"] for kind in collectives.values()) > 0
    result.verify()


def test_a_script_of_objects_is_the_script_of_its_lines():
    mesh = partir.Mesh(batch=2, model=2)
    lines = ["batch(axis=batch)", "megatron(axis=model)", "zero3(axis=batch)"]
    objects = [partir.Batch("batch"), partir.Megatron("model"), partir.Zero3("batch")]
    texts = [partir.partition(example("mlp_step"), mesh, t).spmd_text for t in (lines, objects)]
    assert texts[0] == texts[1]


def test_sequence_needs_less_memory_than_megatron_alone():
    mesh = partir.Mesh(model=4)
    lines = ["megatron(axis=model)", "sequence(axis=model)"]
    result = partir.partition(example("transformer_step"), mesh, lines)
    megatron, sequence, _ = result.report["steps"]
    assert sequence["peak_memory_bytes"] < megatron["peak_memory_bytes"]
    rings = [sum(k["ring_bytes"] for k in s["collectives"].values()) for s in (megatron, sequence)]
    vectors = rings[1] - rings[0]
    assert 0 <= vectors < rings[0]
