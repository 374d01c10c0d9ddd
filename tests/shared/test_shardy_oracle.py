"""Shardy's executable tests: is every shard of a sharded function that of the sequential one?

Each file holds sharded functions, a `main` that cuts inputs into shards, runs a function on all
processes and compares, and mostly a sequential twin. Here the functions are partitioned by us, by
their own annotations; `main` runs them on simulated devices, and all that it compares is compared.
"""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr, UnregisteredOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation

from partir.engine.build import build
from partir.engine.check import check_plan
from partir.engine.session import Session
from partir.interp import run, run_spmd
from partir.partir_dialect.errors import PartirError
from partir.partir_dialect.mesh import Mesh
from partir.partir_dialect.printer import print_module
from partir.partir_dialect.reader import read_module
from partir.passes.import_shardings import import_shardings
from partir.passes.lower_to_spmd import lower_to_spmd
from partir.passes.prepare import prepare
from partir.passes.sharding_forms import normalise_shardings, program_mesh
from partir.passes.to_stablehlo import to_stablehlo

KIND = "sdy-executable-oracle"
FILES = 47

# Functions that mean nothing as one global program, with what we say instead of a number.
REFUSED = {
    "sdy_all_reduce": "sums over devices what the program does not say is partial",
    "sdy_reduce_scatter": "sums over devices what the program does not say is partial",
    "sdy_collective_permute_without_self_loops": "must be over one mesh",
}


@cache
def oracle_files(shared: Path) -> tuple[Path, ...]:
    with (shared / "corpus" / "index.csv").open() as table:
        rows = [row for row in csv.DictReader(table) if row["kind"] == KIND]
    return tuple(shared / "corpus" / row["file"] for row in rows)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "oracle" in metafunc.fixturenames:
        import os

        default = Path(__file__).resolve().parents[2].parent / "shared"
        shared = Path(os.environ.get("PARTIR_SHARED", default))
        files = oracle_files(shared)
        metafunc.parametrize("oracle", files, ids=[file.stem for file in files])


# --- one file -----------------------------------------------------------------------------------


def parts_of(text: str) -> tuple[str, str]:
    """The sharded functions, and the `main` that tests them."""
    _, first, second = re.split(r"^//--- part\d\.mlir\n", text, flags=re.M)
    pretty = r"^(\s*)(check\.expect_\w+) (%\w+), (%\w+) : (.*)$"
    return first, re.sub(pretty, r'\1"\2"(\3, \4) : (\5, \5) -> ()', second, flags=re.M)


def renamed(text: str) -> dict[str, str]:
    """Names under which the file's own commands put a function beside itself: new -> old."""
    return {new: old for old, new in re.findall(r"sed 's/(\w+)/(\w+)/g'", text)}


def name_of(op: Operation) -> str:
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def functions(module: ModuleOp) -> dict[str, FuncOp]:
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}


def alone(text: str, name: str) -> ModuleOp:
    """The module with that function alone, as its `main`."""
    module = read_module(text, "part1")
    for other, function in functions(module).items():
        if other != name:
            function.detach()
            function.erase()
        else:
            function.properties["sym_name"] = StringAttr("main")
    return module


def is_sharded(text: str, name: str) -> bool:
    return "sdy." in str(functions(read_module(text, "part1"))[name])


def partitioned(text: str, name: str) -> tuple[FuncOp, tuple[int, ...], list[str]]:
    """The device-local function by the function's own annotations, the numbers of its devices, and
    the notes."""
    module = alone(text, name)
    own = program_mesh(module)
    assert own is not None
    taken = import_shardings(module)
    plan = taken.session.plan()
    check_plan(plan)
    lower_to_spmd(taken.source, plan, taken.session.state.mesh)
    to_stablehlo(module)
    module.verify()
    assert "sdy." not in print_module(module)
    local = functions(module)["main"]
    local.detach()
    local.properties["sym_name"] = StringAttr(name)
    return local, own.device_ids or tuple(range(own.device_count)), taken.notes


def programs_of(op: Operation) -> list[str]:
    rows = cast("ArrayAttr[ArrayAttr[SymbolRefAttr]]", op.attributes["programs"])
    return [name.string_value() for row in rows.data for name in row.data]


def in_one_row(op: Operation, devices: tuple[int, ...]) -> None:
    """All processes are partitions, and each is at the place that its mesh gives it."""
    names = programs_of(op)
    rows = cast("list[Attribute]", [ArrayAttr([SymbolRefAttr(name) for name in names])])
    op.attributes["programs"] = cast("Attribute", ArrayAttr(rows))
    takes, gives = len(op.operands) // len(names), len(op.results) // len(names)
    operands = list(op.operands)
    op.operands = [v for d in devices for v in operands[d * takes : (d + 1) * takes]]
    uses = [list(result.uses) for result in op.results]
    for place, device in enumerate(devices):
        for k in range(gives):
            for use in uses[device * gives + k]:
                use.operation.operands[use.index] = op.results[place * gives + k]


def called(module: ModuleOp) -> set[str]:
    """The functions that `main` calls; a twin that a file lacks is the function unsharded."""
    calls = [op for op in module.walk() if isinstance(op, CallOp)]
    return {call.callee.string_value() for call in calls}


def checked(main: FuncOp) -> int:
    """Lets `main` return what it compares, pairwise; how many pairs."""
    block = main.body.block
    checks = [op for op in block.ops if name_of(op).startswith("check.expect_")]
    last = block.last_op
    assert last is not None
    assert {name_of(op) for op in checks} <= {"check.expect_eq", "check.expect_almost_eq"}
    last.operands = [operand for op in checks for operand in op.operands]
    main.update_function_type()
    for op in checks:
        op.detach()
        op.erase()
    return len(checks)


def with_local_functions(file: Path) -> tuple[ModuleOp, int]:
    """The test of a file, its functions as we partition them, and how many pairs it compares."""
    text = file.read_text()
    first, second = parts_of(text)
    names = renamed(text)
    module = read_module(second, file.name)
    parallel = [op for op in module.walk() if name_of(op) == "interpreter.run_parallel"]
    assert parallel, "no function runs in parallel"
    wanted = {name for op in parallel for name in programs_of(op)}
    for name in sorted(wanted):
        local, devices, _ = partitioned(first, names.get(name, name))
        local.properties["sym_name"] = StringAttr(name)
        module.body.block.add_op(local)
        for op in parallel:
            if programs_of(op)[0] == name:
                in_one_row(op, devices)
    rest = read_module(first, file.name)
    for name, function in functions(rest).items():
        if name not in wanted and name not in names.values():
            function.detach()
            module.body.block.add_op(function)
    for name in called(module) - set(functions(module)):
        twin = alone(first, name.replace("sequential", "parallel"))
        normalise_shardings(twin, None, keep=False)
        function = functions(twin)["main"]
        function.detach()
        function.properties["sym_name"] = StringAttr(name)
        module.body.block.add_op(function)
    return module, checked(functions(module)["main"])


def agree(results: list[Any]) -> None:
    for got, wanted in zip(results[::2], results[1::2], strict=True):
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        if got.dtype.kind in "iub":
            np.testing.assert_array_equal(got, wanted)
        else:
            scale = max(1.0, float(np.abs(wanted.astype(np.float64)).max(initial=0)))
            bound = 8 * float(np.finfo(np.float32).eps) * scale
            np.testing.assert_allclose(
                got.astype(np.float64), wanted.astype(np.float64), rtol=0, atol=bound
            )


# --- the tests ----------------------------------------------------------------------------------


def test_all_files_are_there(shared: Path) -> None:
    assert len(oracle_files(shared)) == FILES


def test_shards_are_those_of_the_sequential_function(oracle: Path) -> None:
    text = oracle.read_text()
    if oracle.stem in REFUSED:
        first, second = parts_of(text)
        with pytest.raises(PartirError, match=REFUSED[oracle.stem]):
            for name in set(re.findall(r"@(\w+)", second)) & set(functions_named(first)):
                partitioned(first, name)
        return
    if "run_parallel" not in text:
        rewritten_gather(text)
        return
    module, pairs = with_local_functions(oracle)
    assert pairs > 0
    agree(run(module, []))


def functions_named(text: str) -> list[str]:
    return list(functions(read_module(text, "part1")))


def rewritten_gather(text: str) -> None:
    """Files that test a rewrite of Shardy's: the function has no shardings. Tiled along the batch
    and by rows, it must give what it gives whole."""
    first, second = parts_of(text)
    (name,) = functions_named(first)
    given = run_of_main(second, first, name)
    whole = alone(first, name)
    wanted = run(whole, given)
    mesh = Mesh(x=2)
    for argument in range(2):
        module = alone(first, name)
        prepare(module)
        graph, source = build(module)
        session = Session(graph, mesh)
        session.begin("tile")
        assert session.tile(graph.arguments[argument].value, 0, "x").done
        session.propagate()
        plan = session.plan()
        check_plan(plan)
        lower_to_spmd(source, plan, mesh)
        inputs: list[list[Any]] = [[], []]
        for device in range(2):
            for local, array in zip(plan.arguments, given, strict=True):
                inputs[device].append(cut(array, plan.placement(local).dims, mesh, device))
        outputs = run_spmd(module, mesh, inputs)
        for device in range(2):
            for local, got, full in zip(plan.results, outputs[device], wanted, strict=True):
                part = cut(full, plan.placement(local).dims, mesh, device)
                np.testing.assert_array_equal(np.where(part == -12345, part, got), part)


def cut(array: Any, dims: tuple[tuple[str, ...], ...], mesh: Mesh, device: int) -> Any:
    """A device's tile, padded with a number that nothing else has."""
    for d, axes in enumerate(dims):
        for axis in axes:
            tiles = mesh.size(axis)
            wide = -(-array.shape[d] // tiles) * tiles - array.shape[d]
            widths = [(0, wide if e == d else 0) for e in range(array.ndim)]
            padded = np.pad(array, widths, constant_values=-12345)
            array = np.split(padded, tiles, d)[mesh.coordinate(device, axis)]
    return array


def run_of_main(second: str, first: str, name: str) -> list[Any]:
    """The arguments with which `main` calls the function."""
    module = read_module(second, "part2")
    main = functions(module)["main"]
    call = next(op for op in main.body.block.ops if op.name == "func.call")
    last = main.body.block.last_op
    assert last is not None
    operands = list(call.operands)
    last.operands = operands
    for op in reversed(list(main.body.block.ops)):
        if name_of(op).startswith(("func.call", "check.")):
            op.detach()
            op.erase(safe_erase=False)
    main.update_function_type()
    return run(module, [])
