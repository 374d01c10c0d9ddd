"""Is a program the same whichever way it comes in?"""

from __future__ import annotations

import importlib
import io
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import partir
from partir.partir_dialect.errors import PartirError, ReadError

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mlp_step.mlir"
TACTICS = ["batch(axis=batch)", "megatron(axis=model)"]
MESH = partir.Mesh(batch=4, model=2)


def encoded(portable: bool) -> bytes:
    ir: Any = importlib.import_module("jax.extend.mlir.ir")
    mlir: Any = importlib.import_module("jax.interpreters.mlir")
    extend: Any = importlib.import_module("jax.extend.mlir")
    with mlir.make_ir_context():
        module = ir.Module.parse(EXAMPLE.read_text())
        if portable:
            return extend.serialize_portable_artifact(module, "1.9.0")
        stream = io.BytesIO()
        module.operation.write_bytecode(stream)
        return stream.getvalue()


def test_arguments_and_results() -> None:
    program = partir.read(EXAMPLE)
    assert [str(a) for a in program.arguments[:4]] == [
        "params/b0: f32[128]",
        "params/b1: f32[128]",
        "params/b2: f32[8]",
        "params/w0: f32[32, 128]",
    ]
    assert [a.name for a in program.arguments[-2:]] == ["batch/x", "batch/y"]
    assert [r.name for r in program.results] == [
        *(f"result/0/{a.name.removeprefix('params/')}" for a in program.arguments[:6]),
        "result/1",
    ]


@pytest.mark.parametrize("portable", [False, True])
def test_bytecode_is_the_same_program(portable: bool) -> None:
    text, code = partir.read(EXAMPLE), partir.read_text(encoded(portable), "mlp.mlirbc")
    assert code.arguments == text.arguments and code.results == text.results
    first, second = (partir.partition(p, MESH, TACTICS) for p in (text, code))
    assert first.shardings == second.shardings
    assert first.plan.counts() == second.plan.counts()


def test_broken_bytecode_is_the_users_fault() -> None:
    with pytest.raises(ReadError, match="x:1:1: error: cannot be read as MLIR bytecode"):
        partir.read_text(encoded(False)[:500], "x")


def test_each_module_is_the_callers_own() -> None:
    program = partir.read(EXAMPLE)
    first, second = program.module(), program.module()
    assert first is not second
    for op in list(first.body.block.ops):
        op.detach()
    assert program.module().body.block.first_op is not None


def test_a_program_can_be_partitioned_twice() -> None:
    program = partir.read(EXAMPLE)
    texts = [partir.partition(program, MESH, TACTICS).spmd_text for _ in range(2)]
    assert texts[0] == texts[1]


def step(params: dict[str, jax.Array], x: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
    value, gradients = jax.value_and_grad(lambda p: jnp.mean(jnp.tanh(x @ p["w"]) ** 2))(params)
    return jax.tree.map(lambda p, g: p - g, params, gradients), value


SHAPES = (
    {"w": jax.ShapeDtypeStruct((8, 16), jnp.float32)},
    jax.ShapeDtypeStruct((32, 8), jnp.float32),
)


@pytest.mark.parametrize("function", [step, jax.jit(step, donate_argnums=0, keep_unused=True)])
def test_a_jax_function(function: Any) -> None:
    program = partir.from_jax(function, *SHAPES)
    assert [a.name for a in program.arguments] == ["params/w", "x"]
    result = partir.partition(program, partir.Mesh(batch=8), ["tile x dim=0 axis=batch"])
    assert result.plan.counts()["all_reduce"]["count"] == 2  # the gradient and the loss
    result.verify()


def test_shardings_are_what_jax_takes() -> None:
    result = partir.partition(partir.read(EXAMPLE), MESH, [*TACTICS, "zero3(axis=batch)"])
    assert result.shardings["batch/x"] == ("batch", None)
    assert result.shardings["params/w0"] == ("batch", "model")
    assert result.shardings["params/w1"] == (("model", "batch"), None)
    assert result.shardings["result/1"] == ()
    specs = {name: jax.sharding.PartitionSpec(*spec) for name, spec in result.shardings.items()}
    mesh = jax.make_mesh((4, 2), ("batch", "model"))
    for tensor in result.program.arguments:
        sharding = jax.sharding.NamedSharding(mesh, specs[tensor.name])
        local = next(
            a
            for a in result.plan.arguments
            if result.plan.values[a].value == result.graph.argument(tensor.name).value
        )
        assert sharding.shard_shape(tensor.shape) == result.plan.values[local].shape


def test_every_public_name_is_there() -> None:
    for name in partir.__all__:
        assert getattr(partir, name).__name__ == name
    assert set(partir.__all__) <= set(dir(partir))
    with pytest.raises(AttributeError, match="no attribute 'serach'"):
        _ = partir.serach


def test_tactics_as_objects() -> None:
    program = partir.read(EXAMPLE)
    objects = partir.partition(program, MESH, [partir.Batch("batch"), partir.Megatron("model")])
    texts = partir.partition(program, MESH, TACTICS)
    assert objects.shardings == texts.shardings
    assert [s.tactic for s in objects.steps] == [
        'batch(axis="batch")',
        'megatron(axis="model")',
    ]


def test_a_program_without_main() -> None:
    program = partir.read_text(
        "func.func private @f() { return }\nfunc.func private @g() { return }"
    )
    with pytest.raises(PartirError, match="no function @main"):
        _ = program.arguments
