"""Do the demonstration, the README and the examples do what they say?"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import partir
from partir.runtime.xla import compile_check

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
WIDTH, HIDDEN, BLOCKS = 64, 128, 2
TENSORS = 8 * BLOCKS + 2  # six matrices and two scales a block, two tables


def test_the_demonstration_ends_in_equal_without_jax() -> None:
    code = (
        "import runpy, sys; sys.modules['jax'] = None; sys.modules['jaxlib'] = None; "
        f"runpy.run_path({str(EXAMPLES / 'demo.py')!r}, run_name='__main__')"
    )
    start = time.monotonic()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert time.monotonic() - start < 120
    lines = run.stdout.splitlines()
    assert lines[-1] == "equal"
    rows = [line.split("│")[1].strip() for line in lines if line.startswith("│")]
    assert rows == ["batch(axis=batch)", "megatron(axis=model)", "zero3(axis=batch)", "final"]


def test_the_readme_shows_what_its_commands_print(
    script: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    check = script("readme")
    text = (ROOT / "README.md").read_text()
    assert text.count("$ partir ") == 2
    assert check.renewed(text, check.run_in(tmp_path)) == text


def test_a_readme_that_lies_is_found(script: Callable[[str], ModuleType], tmp_path: Path) -> None:
    check = script("readme")
    text = "```console\n$ echo right\nwrong\n```\n"
    assert check.renewed(text, check.run_in(tmp_path)) == text.replace("wrong", "right")


@pytest.mark.parametrize("name", ["transformer_step", "mlp_step"])
def test_the_examples_are_what_their_generator_makes(name: str) -> None:
    path = EXAMPLES / "make_examples.py"
    spec = importlib.util.spec_from_file_location("examples_make_examples", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.texts()[name] == (EXAMPLES / f"{name}.mlir").read_text()


@pytest.mark.parametrize(
    ("tactics", "all_gather", "all_reduce", "reduce_scatter"),
    [
        # every gradient, and the loss
        (["batch(axis=batch)"], 0, TENSORS + 1, 0),
        # forward and backward, attention and MLP
        (["batch(axis=batch)", "megatron(axis=model)"], 0, TENSORS + 1 + 4 * BLOCKS, 0),
        (["megatron(axis=model)"], 0, 4 * BLOCKS, 0),
    ],
)
def test_counts_of_the_transformer(
    tactics: list[str], all_gather: int, all_reduce: int, reduce_scatter: int
) -> None:
    program = partir.read(EXAMPLES / "transformer_step.mlir")
    result = partir.partition(program, partir.Mesh(batch=4, model=2), tactics)
    counts = {kind: row["count"] for kind, row in result.plan.counts().items()}
    assert counts["all_gather"] == all_gather
    assert counts["all_reduce"] == all_reduce
    assert counts["reduce_scatter"] == reduce_scatter
    assert counts["all_to_all"] == counts["collective_permute"] == 0
    for kind, count in counts.items():
        assert result.spmd_text.count(f'"stablehlo.{kind}"(') == count


@pytest.mark.parametrize("script", ["data_parallel", "zero2", "zero3"])
@pytest.mark.parametrize("name", ["transformer_step", "mlp_step"])
def test_every_script_keeps_every_example_equal(name: str, script: str) -> None:
    program = partir.read(EXAMPLES / f"{name}.mlir")
    partir.partition(program, tactics=EXAMPLES / f"{script}.tactic").verify()


def test_xla_agrees_on_the_perceptron() -> None:
    program = partir.read(EXAMPLES / "mlp_step.mlir")
    result = partir.partition(program, tactics=EXAMPLES / "zero3.tactic")
    result.verify(backend="xla")


def test_xla_compiles_the_transformer() -> None:
    program = partir.read(EXAMPLES / "transformer_step.mlir")
    result = partir.partition(program, tactics=EXAMPLES / "zero3.tactic")
    compile_check(result.spmd_text, result.mesh)
