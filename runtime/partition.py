"""From a global program and a script to the device-local program: the whole road in one function.

read → prepare → graph → tactics, one by one → plan → lower → print. What the program has become
after each tactic is estimated on the plan of that moment, so the report costs no lowering.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from ..cost.device import DEFAULT, Device, find_device
from ..cost.estimate import Estimate, estimate
from ..engine.build import Source, build
from ..engine.graph import Graph, pair
from ..engine.plan import Plan
from ..engine.roles import Roles, donations, find_roles
from ..engine.session import Session
from ..partir_dialect.errors import ExpectationError, MeshError, PartirError, Span
from ..partir_dialect.mesh import Mesh
from ..partir_dialect.placement import Placement
from ..partir_dialect.printer import print_module
from ..passes.import_shardings import (
    agreeing_pairs,
    build_given,
    prepare_shardings,
    take_shardings,
)
from ..passes.loops import loops
from ..passes.lower_to_spmd import Lowered, lower_to_spmd
from ..passes.nest_state import store
from ..passes.prepare import prepare
from ..passes.sharding_forms import ShardingError, choose_mesh, has_shardings
from ..passes.to_sdy import axis_references, join_axes, to_sdy
from ..passes.to_stablehlo import to_stablehlo
from ..tactics import Run, Script, Searcher, Step, Tactic, load, script_of
from ..tactics import run as run_script
from ..tactics.syntax import Action, Call, For, If
from .border import part_text, rewrite_border
from .program import Program

FINAL = "final"

Tactics = str | Path | Script | Sequence[Tactic | str]
"""A path of a script, a parsed script, or tactics as objects or text."""

SpecEntry = str | tuple[str, ...] | None
Spec = tuple[SpecEntry, ...]


@dataclass
class Clock:
    """Seconds by phase."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def phase(self, name: str) -> Generator[None]:
        """Adds the time of the block to the phase."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


@dataclass(frozen=True)
class Prepared:
    """A program ready for tactics: its graph, arguments and results paired, and the way back.

    `mesh` is the one that was given, or the program's; `own` says whether the program's own
    shardings are to be taken; `notes` tell what of them is not as it was written.
    """

    source: Source
    graph: Graph
    roles: Roles
    mesh: Mesh | None = None
    own: bool = False
    notes: tuple[str, ...] = ()


def prepare_program(
    program: Program, clock: Clock | None = None, *, mesh: Mesh | None = None, own: bool = False
) -> Prepared:
    """Reads and prepares a program; with `own` for its own shardings, over its own mesh if none is
    given. Raises `PartirError`."""
    clock = clock or Clock()
    with clock.phase("read"):
        module = program.module()
    with clock.phase("prepare"), located(program):
        if any(word in program.text for word in _SHARDED):
            return _with_shardings(module, mesh, own)
        prepare(module)
        graph, source = build(module)
        roles = find_roles(graph, donations(source.function))
        pair(graph, dict(roles.pairs))
    return Prepared(source, graph, roles, mesh)


_SHARDED = ("sdy.", "mhlo.sharding")
"""What a text without any sharding, mesh or manual computation has nowhere."""


def _with_shardings(module: ModuleOp, mesh: Mesh | None, own: bool) -> Prepared:
    sharded = has_shardings(module)
    own = own and sharded
    if own or mesh is None:
        mesh = choose_mesh(module, mesh)
    if own and mesh is None:
        raise MeshError("which mesh? neither --mesh nor the program names one")
    notes = prepare_shardings(module, mesh, keep=own)
    if sharded and not own and mesh is not None:
        notes.append("the program's own shardings are left out, since there are tactics")
    graph, source = build_given(module, mesh, notes) if own and mesh is not None else build(module)
    roles = find_roles(graph, donations(source.function))
    pairs = agreeing_pairs(graph, source, roles.pairs)
    pair(graph, pairs)
    roles = replace(roles, pairs=pairs)
    return Prepared(source, graph, roles, mesh, own, tuple(notes))


@contextmanager
def located(program: Program) -> Generator[None]:
    """Gives an error about a sharding the place in the program's text at which it is written."""
    try:
        yield
    except ShardingError as error:
        at = program.text.find(error.written) if error.written else -1
        if error.span is None and at >= 0:
            error.span = Span.at(program.filename, program.text, at, len(error.written))
        raise


def script_from(tactics: Tactics) -> Script:
    """The script that the caller means; raises `TacticError`."""
    if isinstance(tactics, Script):
        return tactics
    if isinstance(tactics, str | Path):
        return load(str(tactics))
    return script_of(tactics)


@dataclass(frozen=True)
class Snapshot:
    """What the program is after one statement of the script (or at the end), on one device."""

    tactic: str
    seconds: float
    counts: dict[str, dict[str, int]]
    estimate: Estimate
    conflicts: int
    fallbacks: int

    @property
    def row(self) -> dict[str, Any]:
        """The entry of the report's `steps`."""
        return {
            "tactic": self.tactic,
            "seconds": round(self.seconds, 6),
            "collectives": self.counts,
            "peak_memory_bytes": self.estimate.peak_memory_bytes,
            "argument_bytes": self.estimate.argument_bytes,
            "flops": self.estimate.flops,
            "estimated_time_s": self.estimate.seconds,
            "conflicts": self.conflicts,
            "fallbacks": self.fallbacks,
        }


@dataclass
class Partitioned:
    """A partitioned program: what it became, how, and the means to check it.

    `steps` is what each statement did, `snapshots` what the program was after it; `own` says
    whether the program's own shardings were taken, `notes` what of them is not as it was written.
    """

    program: Program
    mesh: Mesh
    device: Device
    session: Session
    roles: Roles
    plan: Plan
    run: Run
    snapshots: list[Snapshot]
    clock: Clock
    _prepared: list[Prepared] = field(default_factory=list[Prepared], repr=False)
    own: bool = False
    notes: tuple[str, ...] = ()

    @property
    def steps(self) -> list[Step]:
        """What each top-level statement of the script did."""
        return self.run.steps

    @property
    def graph(self) -> Graph:
        """The arrays of the prepared program."""
        return self.plan.graph

    def fresh(self) -> Prepared:
        """The prepared program with its IR, not lowered, for the caller to change."""
        if self._prepared:
            return self._prepared.pop()
        return prepare_program(self.program, mesh=self.mesh, own=self.own)

    def lower(self, source: Source) -> Lowered:
        """Rewrites the IR of `source` into the device-local program, collectives by mesh axis."""
        return lower_to_spmd(source, self.plan, self.session.state.mesh)

    def spmd_module(self) -> ModuleOp:
        """The device-local StableHLO module, for the caller to keep and change."""
        source = self.fresh().source
        self.lower(source)
        to_stablehlo(source.module)
        rewrite_border(source.module, self.whole_axes)
        return source.module

    @cached_property
    def spmd_text(self) -> str:
        """The device-local program as StableHLO text, collectives by device group."""
        with self.clock.phase("lower"):
            module = self.spmd_module()
        with self.clock.phase("print"):
            return print_module(module)

    @property
    def shardings(self) -> dict[str, Spec]:
        """For each argument and result by flat name what `jax.sharding.PartitionSpec` takes: for
        each dimension None, an axis, or several axes, major to minor."""
        return {name: tuple(map(_entry, dims)) for name, dims in self.axes_of_dims().items()}

    def axes_of_dims(self) -> dict[str, list[list[str]]]:
        """For each argument and result by flat name, the axes that tile each dimension."""
        return {
            entry["name"]: entry["placement"]
            for entry in (*self.entries("arguments"), *self.entries("results"))
        }

    def entries(self, side: str) -> list[dict[str, Any]]:
        """The report's entries of the `arguments` or the `results`."""
        graph, plan = self.graph, self.plan
        named = graph.arguments if side == "arguments" else graph.outcomes
        locals_ = plan.arguments if side == "arguments" else plan.results
        return [
            {
                "name": border.name,
                "shape": list(graph.shapes[border.value]),
                "dtype": graph.dtypes[border.value],
                **_placed(self.whole_axes(plan.placement(local))),
            }
            for border, local in zip(named, locals_, strict=True)
        ]

    def whole_axes(self, placement: Placement) -> Placement:
        """The placement in axes of the mesh as it was given: parts of a refined axis are merged
        where they stand together, else written as Shardy does, `model:(1)2`."""
        references = axis_references(self.plan, self.mesh, self.session.atoms)
        named = dict(zip(self.plan.axes, references, strict=True))
        return Placement(
            tuple(
                tuple(part_text(r) for r in join_axes([named[a] for a in axes], self.mesh))
                for axes in placement.dims
            ),
            placement.pending,
        )

    @property
    def report(self) -> dict[str, Any]:
        """The JSON report, as the public interface describes it."""
        seconds = {name: 0.0 for name in ("read", "prepare", "tactics", "lower", "print")}
        return {
            "program": self.program.filename,
            "mesh": [{"axis": axis, "size": size} for axis, size in self.mesh.axes],
            "device": self.device.name,
            "arguments": self.entries("arguments"),
            "results": self.entries("results"),
            "steps": [snapshot.row for snapshot in self.snapshots],
            "notes": list(self.notes),
            "seconds": {k: round(v, 6) for k, v in (seconds | self.clock.seconds).items()},
        }

    def emit(self, kind: str = "spmd") -> str:
        """The program in one of the forms of `EMITS`. Raises `PartirError` for another."""
        if kind not in EMITS:
            raise PartirError(
                f"this version of partir does not emit: {kind!r}", name=kind, candidates=EMITS
            )
        return EMITS[kind](self)

    def check_expectations(self) -> None:
        """Raises `ExpectationError` for the first `expect` of the script that does not hold; the
        others are its notes."""
        errors = [ExpectationError(e.message, span=e.span) for e in self.run.failed]
        if errors:
            for other in errors[1:]:
                errors[0].add_note(other.render())
            raise errors[0]

    def verify(self, backend: str = "numpy", seed: int = 0, rtol: float | None = None) -> None:
        """Runs both programs on the same random inputs; raises `MismatchError` if they differ."""
        from .verify import verify_partitioned

        verify_partitioned(self, backend=backend, seed=seed, rtol=rtol)


def _entry(axes: Sequence[str]) -> SpecEntry:
    if len(axes) > 1:
        return tuple(axes)
    return axes[0] if axes else None


def _placed(placement: Placement) -> dict[str, Any]:
    return {
        "placement": [list(axes) for axes in placement.dims],
        "partial": [axis for axis, _ in placement.pending],
    }


def _spmd(result: Partitioned) -> str:
    return result.spmd_text


def _shardings(result: Partitioned) -> str:
    return json.dumps(result.axes_of_dims(), indent=1)


def nest_form(result: Partitioned) -> ModuleOp:
    """The global program with every op's nest as an attribute."""
    source = result.fresh().source
    store(result.session, source)
    return source.module


def _nests(result: Partitioned) -> str:
    return print_module(nest_form(result))


def _loops(result: Partitioned) -> str:
    module = nest_form(result)
    loops(module)
    return print_module(module)


def _sdy(result: Partitioned) -> str:
    source = result.fresh().source
    to_sdy(source, result.plan, result.mesh, result.session.atoms)
    return print_module(source.module)


EMITS = {
    "spmd": _spmd,
    "loops": _loops,
    "nests": _nests,
    "sdy": _sdy,
    "shardings": _shardings,
}


def partition(
    program: Program,
    mesh: Mesh | None = None,
    tactics: Tactics = (),
    *,
    device: str | None = None,
    strict: bool = False,
    searcher: Searcher | None = None,
    expectations: bool = True,
    own: bool | None = None,
) -> Partitioned:
    """Partitions a program over a mesh as the tactics say; without any, as its own shardings say.

    `mesh` and `device` default to those that the script names, `mesh` then to the program's own.
    With `own` the program's shardings are taken before the tactics, too (False: never). With
    `strict` a tactic that changes nothing is an error. Raises `PartirError` and its kinds;
    `ExpectationError` for an `expect` that does not hold unless `expectations` is false
    (`Partitioned.check_expectations` raises it later).
    """
    script = script_from(tactics)
    own = not acts(script) if own is None else own
    if mesh is None and script.mesh is not None:
        mesh = mesh_of(script)
    model = find_device(device or script.device or DEFAULT)
    clock = Clock()
    prepared = prepare_program(program, clock, mesh=mesh, own=own)
    mesh = prepared.mesh or mesh_of(script)
    notes = list(prepared.notes)
    with clock.phase("tactics"):
        session = Session(prepared.graph, mesh)
        with located(program):
            take_shardings(session, prepared.source, notes)
        recorder = _Recorder(session, prepared.roles, model)
        run = run_script(
            script,
            session,
            roles=prepared.roles,
            searcher=searcher,
            measure=recorder.measure,
            strict=strict,
            after=recorder.after,
        )
        plan = recorder.final()
    result = Partitioned(
        program,
        mesh,
        model,
        session,
        prepared.roles,
        plan,
        run,
        recorder.snapshots,
        clock,
        [prepared],
        prepared.own,
        tuple(notes),
    )
    if expectations:
        result.check_expectations()
    return result


def acts(script: Script) -> bool:
    """Whether a script decides anything, beside naming and expecting."""
    return any(isinstance(s, Call | Action | For | If) for s in script.statements)


def mesh_of(script: Script) -> Mesh:
    """The mesh that the script names; raises `MeshError` if it names none."""
    if script.mesh is None:
        raise MeshError("which mesh? neither --mesh nor the script nor the program names one")
    return Mesh([(size.axis, size.size) for size in script.mesh.sizes])


class _Recorder:
    """Takes a snapshot after every statement."""

    def __init__(self, session: Session, roles: Roles, device: Device) -> None:
        self.session = session
        self.donated = frozenset(roles.pairs)
        self.device = device
        self.snapshots: list[Snapshot] = []
        self.started = time.perf_counter()

    def measure(self, session: Session) -> dict[str, float]:
        """The quantities that an `expect` may ask for beside the counts."""
        found = estimate(session.plan(), self.device, self.donated)
        return {
            "peak_memory_bytes": found.peak_memory_bytes,
            "flops": found.flops,
            "estimated_time_s": found.seconds,
        }

    def after(self, step: Step) -> None:
        """Records what the statement led to."""
        self.take(step.tactic, self.session.plan(), step.conflicts)

    def take(self, tactic: str, plan: Plan, conflicts: int) -> None:
        """Records a plan under the name of a tactic."""
        now = time.perf_counter()
        cost = estimate(plan, self.device, self.donated)
        self.snapshots.append(
            Snapshot(
                tactic, now - self.started, plan.counts(), cost, conflicts, len(plan.fallbacks)
            )
        )
        self.started = now

    def final(self) -> Plan:
        """The plan of the final state, recorded as the last step."""
        plan = self.session.plan()
        conflicts = len(self.session.open_conflicts())
        self.take(FINAL, plan, conflicts)
        return plan
