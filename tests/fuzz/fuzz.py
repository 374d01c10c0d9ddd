"""Is the partitioned program ever wrong? Random programs, meshes and decisions, global against
local.

`python tests/fuzz/fuzz.py N [SEED]` runs N cases and prints a line for each thousand; a failing
case is shrunk to the smallest program that still fails and written to a file that can be read and
run. Every case also asserts that the plan's counts are those of a count over the printed text, that
the plan is well typed, and that undoing all decisions restores the hash of the state.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import random
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from partir.engine.build import build
from partir.engine.check import check_plan
from partir.engine.plan import Plan
from partir.engine.session import Session
from partir.interp import run, run_spmd
from partir.partir_dialect.mesh import Mesh
from partir.partir_dialect.printer import print_module
from partir.partir_dialect.reader import read_module
from partir.passes.check_spmd import check_spmd
from partir.passes.lower_to_spmd import lower_to_spmd
from partir.passes.optimise_collectives import optimise_collectives
from partir.passes.prepare import prepare
from partir.passes.to_stablehlo import to_stablehlo

HERE = Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("fuzz_programs", HERE / "programs.py")
assert _spec is not None and _spec.loader is not None
programs = importlib.util.module_from_spec(_spec)
sys.modules["fuzz_programs"] = programs
_spec.loader.exec_module(programs)

Array = np.ndarray[Any, np.dtype[Any]]

MESHES = (
    dict(a=2), dict(a=3), dict(a=4), dict(a=8), dict(a=2, b=2), dict(a=4, b=2), dict(a=2, b=3),
    dict(a=2, b=4), dict(a=2, b=2, c=2), dict(a=4, b=4), dict(a=2, b=8),
)  # fmt: skip


@dataclass(frozen=True)
class Action:
    """One decision: `kind` is tile, stop, replicate or propagate."""

    kind: str
    value: str = ""
    dim: int = 0
    axis: str = ""


@dataclass(frozen=True)
class Case:
    """A program, a mesh, decisions in order, and the seed of the inputs."""

    program: Any
    mesh: dict[str, int]
    actions: tuple[Action, ...]
    seed: int


def random_case(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    program = programs.random_program(rng, rng.randint(1, 7))
    mesh = rng.choice(MESHES)
    values = [v for v in program.values if v.shape]
    actions: list[Action] = []
    for _ in range(rng.randint(1, 5)):
        value = rng.choice([*values, *(v for v in program.arguments if v.shape)])
        axis = rng.choice(list(mesh))
        kind = rng.choice(["tile"] * 8 + ["stop", "replicate"])
        actions.append(Action(kind, value.name, rng.randrange(len(value.shape)), axis))
        if rng.random() < 0.7:
            actions.append(Action("propagate"))
    actions.append(Action("propagate"))
    return Case(program, mesh, tuple(actions), seed)


def draw(case: Case) -> list[Array]:
    """Whole numbers: floats in [-3, 3], indices a little out of range."""
    rng = np.random.default_rng(case.seed)
    found: list[Array] = []
    for v in case.program.arguments:
        dtype = np.int32 if v.element == "i32" else np.float32
        low, high = (-2, 14) if v.element == "i32" else (-3, 4)
        found.append(np.asarray(rng.integers(low, high, v.shape)).astype(dtype))
    return found


def decide(session: Session, values: dict[str, int], actions: tuple[Action, ...]) -> None:
    session.begin("fuzz")
    for action in actions:
        if action.kind == "propagate":
            session.propagate()
            session.begin("fuzz")
        elif action.value in values:
            value = values[action.value]
            if action.kind == "tile":
                session.tile(value, action.dim, action.axis)
            elif action.kind == "stop":
                session.stop(value, action.axis)
            else:
                session.replicate(value, action.axis)


def check(case: Case) -> None:
    """Raises AssertionError if anything about the case is wrong."""
    text = case.program.text()
    inputs = draw(case)
    expected = run(read_module(text), inputs)
    module = read_module(text)
    prepare(module)
    graph, source = build(module)
    mesh = Mesh(**case.mesh)
    session = Session(graph, mesh)
    values = {ssa.name_hint: number for number, ssa in source.values.items() if ssa.name_hint}
    values |= {argument.name: argument.value for argument in graph.arguments}
    start = (session.state.hash, session.state.mark())
    decide(session, values, case.actions)
    plan = session.plan()
    if session.state.mesh == mesh:
        clone = Session(graph, mesh)
        decide(clone, values, case.actions)
        assert clone.state.hash == session.state.hash, "the same decisions, another hash"
        clone.state.undo(start[1])
        assert clone.state.hash == start[0], "undo does not restore the hash"
    check_plan(plan)
    lower_to_spmd(source, plan, session.state.mesh)
    module.verify()
    check_spmd(module)
    forced = any(action.kind == "replicate" for action in case.actions)
    assert forced or not optimise_collectives(module), "the plan's collectives can be optimised"
    to_stablehlo(module)
    module.verify()
    printed = print_module(module)
    assert counted(printed, plan) == planned(plan), "plan and text count differently"
    _compare(plan, session.state.mesh, inputs, expected, read_module(printed))


def planned(plan: Plan) -> dict[str, int]:
    """Collectives of the plan, each counted once (not by trips)."""
    counts: dict[str, int] = {}
    for step in plan.reshards:
        if step.kind != "all_slice":
            counts[step.kind] = counts.get(step.kind, 0) + 1
    return counts


def counted(text: str, plan: Plan) -> dict[str, int]:
    """Collectives in the text."""
    found = {k: text.count(f"stablehlo.{k}") for k in plan.counts()}
    return {kind: count for kind, count in found.items() if count}


def _tiles(plan: Plan, local: int, mesh: Mesh, device: int) -> tuple[slice, ...]:
    value = plan.values[local]
    whole = plan.graph.shapes[value.value]
    found: list[slice] = []
    for size, tile, axes in zip(whole, value.shape, plan.placement(local).dims, strict=True):
        begin = mesh.index(device, axes) * tile
        found.append(slice(min(begin, size), min(begin + tile, size)))
    return tuple(found)


def _compare(
    plan: Plan, mesh: Mesh, inputs: list[Array], expected: list[Array], module: Any
) -> None:
    local: list[list[Array]] = []
    for device in range(mesh.devices):
        row: list[Array] = []
        for x, v in zip(inputs, plan.arguments, strict=True):
            part = x[_tiles(plan, v, mesh, device)]
            whole = np.full(plan.values[v].shape, np.nan if x.dtype.kind == "f" else 99, x.dtype)
            whole[tuple(slice(0, s) for s in part.shape)] = part
            row.append(whole)
        local.append(row)
    outputs = run_spmd(module, mesh, local)
    for r, v in enumerate(plan.results):
        finite = np.abs(expected[r][np.isfinite(expected[r])].astype(np.float64))
        scale = float(np.max(finite, initial=1.0))
        for device in range(mesh.devices):
            wanted = expected[r][_tiles(plan, v, mesh, device)].astype(np.float64)
            got = outputs[device][r][tuple(slice(0, s) for s in wanted.shape)].astype(np.float64)
            with np.errstate(invalid="ignore"):
                same = (got == wanted) | (np.abs(got - wanted) <= 1e-4 * scale)
            same |= np.isnan(got) & np.isnan(wanted)
            assert same.all(), f"result {r} differs on device {device}"


# --- shrinking ----------------------------------------------------------------------------------


def failure(case: Case) -> str | None:
    """The first line of what goes wrong, or None."""
    try:
        check(case)
    except Exception as error:  # any crash is a finding
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return None


def smaller(case: Case) -> Iterator[Case]:
    """Cases that are a little smaller."""
    for value in case.program.values:
        if len(case.program.results) > 1 or case.program.results != [value]:
            yield dataclasses.replace(case, program=_only(case.program, [value]))
    for k in range(len(case.actions)):
        yield dataclasses.replace(case, actions=case.actions[:k] + case.actions[k + 1 :])
    for line in case.program.lines:
        yield dataclasses.replace(case, program=_cut(case.program, line))
    for axis, size in case.mesh.items():
        rest = {k: v for k, v in case.mesh.items() if k != axis}
        if rest and all(a.axis != axis for a in case.actions):
            yield dataclasses.replace(case, mesh=rest)
        if size > 2:
            yield dataclasses.replace(case, mesh={**case.mesh, axis: 2})


def _only(program: Any, results: list[Any]) -> Any:
    """The part of the program that the results need."""
    needed = {v.name for v in results}
    lines: list[Any] = []
    for line in reversed(program.lines):
        if line.value.name in needed:
            lines.insert(0, line)
            needed |= {v.name for v in line.takes}
    arguments = [a for a in program.arguments if a.name in needed]
    return programs.Program(arguments, lines, results)


def _cut(program: Any, line: Any) -> Any:
    """The program with one op's result as an argument."""
    lines = [other for other in program.lines if other is not line]
    whole = programs.Program([*program.arguments, line.value], lines, list(program.results))
    return _only(whole, whole.results)


def shrink(case: Case, limit: int = 400) -> Case:
    """The smallest case found that fails in the same way."""
    kind = (failure(case) or "").split(":")[0]
    tries = 0
    progress = True
    while progress and tries < limit:
        progress = False
        for candidate in smaller(case):
            tries += 1
            found = failure(candidate)
            if found is not None and found.split(":")[0] == kind:
                case, progress = candidate, True
                break
            if tries >= limit:
                break
    return case


def report(case: Case) -> str:
    """The case as a file: the module, with mesh and decisions in comments."""
    head = [f"// mesh {case.mesh}, seed {case.seed}", f"// {failure(case)}"]
    head += [f"// {action}" for action in case.actions]
    return "\n".join(head) + "\n" + case.program.text()


def main(arguments: list[str]) -> int:
    count = int(arguments[0]) if arguments else 1000
    seed = int(arguments[1]) if len(arguments) > 1 else 0
    failed = 0
    for number in range(seed, seed + count):
        case = random_case(number)
        found = failure(case)
        if found is not None:
            failed += 1
            small = shrink(case)
            path = Path(f"fuzz_{number}.mlir")
            path.write_text(report(small))
            print(f"seed {number}: {found}; shrunk to {path}", flush=True)
        if (number + 1) % 1000 == 0:
            print(f"{number + 1 - seed} cases, {failed} failed", flush=True)
    print(f"{count} cases from seed {seed}: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        traceback.print_exc(limit=1)
        sys.exit(130)
