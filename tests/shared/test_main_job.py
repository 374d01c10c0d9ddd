"""The main job on real programs: a training step in, an equal device-local program out.

What is marked `acceptance` is long and run by `make acceptance`; the rest is run by every CI.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import pytest

import partir
from partir.passes.check_spmd import check_spmd
from partir.runtime.partition import Partitioned
from partir.runtime.xla import check_stablehlo

Measure = Callable[[str, object, object], None]

BATCH, MEGATRON = "batch(axis=batch)", "megatron(axis=model)"
ZERO2, ZERO3 = "zero2(axis=batch)", "zero3(axis=batch)"
SCHEDULES = {
    "batch": (BATCH,),
    "megatron": (MEGATRON,),
    "batch+megatron": (BATCH, MEGATRON),
    "batch+megatron+zero2": (BATCH, MEGATRON, ZERO2),
    "batch+megatron+zero3": (BATCH, MEGATRON, ZERO3),
    "batch+zero3": (BATCH, ZERO3),
}
MESHES = ("batch=4,model=2", "batch=2,model=4")
KINDS = ("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "collective_permute")


@pytest.fixture
def measure(record_property: Callable[[str, object], None]) -> Measure:
    """Notes a figure and what it must be, for docs/acceptance.md."""

    def note(item: str, figure: object, bar: object) -> None:
        for name, value in (("item", item), ("figure", figure), ("bar", bar)):
            record_property(name, value)

    return note


@cache
def read(programs: Path, name: str) -> partir.Program:
    return partir.read(programs / f"{name}.mlir")


def partitioned(programs: Path, name: str, schedule: str, mesh: str = MESHES[0]) -> Partitioned:
    script = list(SCHEDULES[schedule])
    return partir.partition(read(programs, name), partir.Mesh.parse(mesh), script)


def counts(snapshot: dict[str, dict[str, int]]) -> tuple[int, ...]:
    return tuple(snapshot[kind]["count"] for kind in KINDS)


# --- how many collectives -----------------------------------------------------------------------


def expected_counts(layers: int) -> dict[str, tuple[int, ...]]:
    """Nine parameter tensors a layer and a tied embedding: P = 9L + 1."""
    p = 9 * layers + 1
    return {
        "batch": (0, p + 1, 0, 0, 0),
        "megatron": (0, 4 * layers, 0, 0, 0),
        "batch+megatron": (0, p + 1 + 4 * layers, 0, 0, 0),
        "batch+megatron+zero2": (4 * layers + 1, 9 * layers + 1, 4 * layers + 1, 0, 0),
        "batch+megatron+zero3": (8 * layers + 3, 9 * layers + 1, 4 * layers + 1, 0, 0),
    }


@pytest.mark.parametrize("name", ["t_train_L2", "t_train_L2_gather", "t_train_L4", "t_train_L32"])
@pytest.mark.parametrize("last", ["megatron", "batch+megatron+zero2", "batch+megatron+zero3"])
def test_counts_of_the_transformer_after_each_tactic(
    programs: Path, measure: Measure, name: str, last: str
) -> None:
    layers = json.loads((programs / f"{name}.json").read_text())["hyper"]["layers"]
    want = expected_counts(layers)
    result = partitioned(programs, name, last)
    names = last.split("+")
    for n, snapshot in enumerate(result.snapshots[:-1], 1):
        assert counts(snapshot.counts) == want["+".join(names[:n])], names[:n]
    final = counts(result.plan.counts())
    assert final == want[last]
    measure(f"{name}, {last}: AG/AR/RS/A2A/CP", final, want[last])


@pytest.mark.parametrize(
    ("name", "schedule", "want"),
    [
        ("llama_train_L2", "batch", 22),
        ("llama_train_L2", "megatron", 8),
        ("llama_train_L2", "batch+megatron", 30),
        ("mlp_train", "batch", 7),
        ("mlp_train", "batch+megatron", 8),
    ],
)
def test_all_reduces(programs: Path, measure: Measure, name: str, schedule: str, want: int) -> None:
    found = partitioned(programs, name, schedule).plan.counts()["all_reduce"]["count"]
    assert found == want
    measure(f"{name}, {schedule}: all_reduce", found, want)


@pytest.mark.parametrize("name", ["mlp_train", "t_train_L2", "llama_train_L2"])
def test_the_generic_form_gives_the_same(programs: Path, name: str) -> None:
    pretty = partitioned(programs, name, "batch+megatron+zero3")
    generic = partitioned(programs, f"{name}.generic", "batch+megatron+zero3")
    assert generic.shardings == pretty.shardings
    assert generic.plan.counts() == pretty.plan.counts()
    assert nameless(generic.spmd_text) == nameless(pretty.spmd_text)


def nameless(text: str) -> str:
    """The text without the names of its values, which the two forms give differently."""
    return re.sub(r"%\w+", "%", text)


# --- what the text holds ------------------------------------------------------------------------


def walk(op: Any) -> Any:
    for region in op.regions:
        for block in region:
            for inner in block:
                yield inner.operation
                yield from walk(inner.operation)


def counted_in(text: str) -> dict[str, Counter[str]]:
    """Count, result bytes and ring bytes of each kind, as jaxlib reads the text."""
    ir: Any = importlib.import_module("jax.extend.mlir.ir")
    mlir: Any = importlib.import_module("jax.interpreters.mlir")
    found = {kind: Counter(count=0, bytes=0, ring_bytes=0) for kind in KINDS}
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        for op in walk(module.operation):
            kind = op.name.removeprefix("stablehlo.")
            if kind not in KINDS:
                continue
            type_ = ir.RankedTensorType(op.results[0].type)
            size = prod(type_.shape) * ir.ShapedType(type_).element_type.width // 8
            n = 1
            if kind != "collective_permute":
                groups = ir.DenseIntElementsAttr(op.attributes["replica_groups"])
                n = ir.RankedTensorType(groups.type).shape[1]
            ring = {
                "all_reduce": 2 * size * (n - 1) // n,
                "reduce_scatter": size * (n - 1),
                "collective_permute": size,
            }.get(kind, size * (n - 1) // n)
            found[kind].update(count=1, bytes=size, ring_bytes=ring)
    return found


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", ["mlp_train", "t_train_L2", "t_train_L2_gather", "llama_train_L2"])
def test_the_report_is_what_the_text_holds(programs: Path, name: str, schedule: str) -> None:
    result = partitioned(programs, name, schedule)
    text = result.spmd_text
    signature = check_stablehlo(text)
    found = counted_in(text)
    report = result.report["steps"][-1]["collectives"]
    for kind in KINDS:
        assert report[kind]["count"] == found[kind]["count"], kind
        assert report[kind]["bytes"] == found[kind]["bytes"], kind
        # a ring sends whole elements; the report rounds once for each collective
        assert abs(report[kind]["ring_bytes"] - found[kind]["ring_bytes"]) <= found[kind]["count"]
    sizes = [prod(a.shape) * a.dtype.itemsize for a in signature.arguments]
    assert result.report["steps"][-1]["argument_bytes"] == sum(sizes)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", ["mlp_train", "t_train_L2", "llama_train_L2", "moe_train_L2"])
def test_the_lowered_program_type_checks(programs: Path, name: str, schedule: str) -> None:
    result = partitioned(programs, name, schedule)
    source = result.fresh().source
    result.lower(source)
    check_spmd(source.module)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("name", "mesh"),
    [("mlp_train", MESHES[0]), ("t_train_L2", MESHES[0]), ("llama_train_L2", MESHES[1])],
)
def test_jaxlib_takes_what_is_printed_for_shardy(
    programs: Path, name: str, mesh: str, schedule: str
) -> None:
    result = partitioned(programs, name, schedule, mesh)
    text = result.emit("sdy")
    signature = check_stablehlo(text)
    assert [a.shape for a in signature.arguments] == [a.shape for a in result.program.arguments]
    assert text.count("sdy.sharding = #sdy.sharding<") == len(result.shardings)


# --- equal numbers ------------------------------------------------------------------------------


def _verify_cases() -> list[Any]:
    heavy = pytest.mark.acceptance
    cases: list[Any] = []
    for name in ("mlp_train", "t_train_L2", "t_train_L2_gather", "t_train_L4"):
        for schedule in SCHEDULES:
            meshes = [*MESHES, *(["batch=8"] if "megatron" not in schedule else [])]
            for mesh in meshes:
                short = name == "mlp_train" or (name == "t_train_L2" and mesh == MESHES[0])
                short |= schedule == "batch+megatron+zero3" and mesh == MESHES[1]
                marks = () if short else (heavy,)
                cases.append(pytest.param(name, schedule, mesh, marks=marks))
    return cases


@pytest.mark.parametrize(("name", "schedule", "mesh"), _verify_cases())
def test_verify_says_equal(
    programs: Path, measure: Measure, name: str, schedule: str, mesh: str
) -> None:
    partitioned(programs, name, schedule, mesh).verify()
    measure(f"{name}, {schedule} on {mesh}: verify, NumPy", "equal", "equal")


def _xla_cases() -> list[Any]:
    cases: list[Any] = []
    for case in _verify_cases():
        name, schedule, mesh = case.values
        short = name == "mlp_train" and mesh != MESHES[1]
        short |= name == "t_train_L2" and schedule == "batch+megatron+zero3" and mesh == MESHES[0]
        marks = () if short else (pytest.mark.acceptance,)
        cases.append(pytest.param(name, schedule, mesh, marks=marks))
    return cases


@pytest.mark.parametrize(("name", "schedule", "mesh"), _xla_cases())
def test_xla_on_8_devices_agrees_with_the_unpartitioned_run(
    programs: Path, measure: Measure, name: str, schedule: str, mesh: str
) -> None:
    partitioned(programs, name, schedule, mesh).verify(backend="xla")
    measure(f"{name}, {schedule} on {mesh}: XLA, 8 CPU devices", "equal", "equal")


@pytest.mark.parametrize(
    ("name", "schedule"),
    [
        ("llama_train_L2", "batch+megatron"),
        ("llama_train_L2", "batch+megatron+zero3"),
        ("moe_train_L2", "batch+zero3"),
        ("rng_dropout_train", "batch+zero3"),
    ],
)
@pytest.mark.acceptance
def test_verify_says_equal_on_other_programs(
    programs: Path, measure: Measure, name: str, schedule: str
) -> None:
    partitioned(programs, name, schedule).verify()
    measure(f"{name}, {schedule}: verify, NumPy", "equal", "equal")


# --- the big one --------------------------------------------------------------------------------

SECONDS, GIGABYTES = 60, 4


def test_32_layers_from_text_to_text_in_a_minute(
    programs: Path, measure: Measure, tmp_path: Path
) -> None:
    out = tmp_path / "out.mlir"
    command = ["partition", str(programs / "t_train_L32.mlir"), "--mesh", MESHES[0], "-o", str(out)]
    for tactic in SCHEDULES["batch+megatron+zero3"]:
        command += ["--tactic", tactic]
    code = f"""
import resource, sys
from partir.cli.main import main
status = main({command!r})
used = resource.getrusage(resource.RUSAGE_SELF)  # of one thread: what others do does not count
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20)
sys.exit(status)
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    seconds, memory = map(float, run.stdout.splitlines()[-1].split())
    assert seconds < SECONDS and memory < GIGABYTES
    assert counts_in(out.read_text()) == expected_counts(32)["batch+megatron+zero3"]
    bar = f"{SECONDS} s, {GIGABYTES} GiB"
    measure("t_train_L32: text to text", f"{seconds:.1f} s of CPU, {memory:.2f} GiB", bar)


def counts_in(text: str) -> tuple[int, ...]:
    return tuple(text.count(f'"stablehlo.{kind}"(') for kind in KINDS)
