"""`partir-to-sdy`: the decisions as Shardy's attributes on the global program.

Precondition: nest form. Postcondition: the global program without nests, with one `sdy.mesh @mesh`
and a closed `sdy.sharding` on every argument, result and op of main, so that Shardy has nothing
left to decide. Parts of a refined axis are written as Shardy's sub-axes.

```mlir
%0 = stablehlo.tanh %x {partir.nest = #partir.nest<[batch: i]>} : tensor<256x8xf32>
```
becomes
```mlir
sdy.mesh @mesh = <["batch"=4]>
%0 = stablehlo.tanh %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"batch"}, {}]>]>}
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from ..engine.build import Source
from ..engine.graph import EXIT
from ..engine.plan import Compute, Plan
from ..partir_dialect.mesh import Mesh
from ..partir_dialect.partir import ReplicateOp, StopOp
from ..partir_dialect.partir_types import CARRIES, FORM, NEST
from ..partir_dialect.sdy import (
    AxisRef,
    DimSharding,
    ManualComputationOp,
    MeshOp,
    MeshValue,
    Sharding,
    ShardingAttr,
    ShardingConstraintOp,
    ShardingPerValueAttr,
)
from .manual_region import manual_part
from .nest_state import MESH
from .tile import open_session

NAME = "mesh"
SHARDING = "sdy.sharding"
_DROPPED = frozenset({NEST, SHARDING, "mhlo.sharding"})


def to_sdy(
    source: Source, plan: Plan, mesh: Mesh, atoms: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Writes the placements of `plan` into the global module of `source`, in place.

    `mesh` has the axes as the user named them; `atoms` the parts of each, major to minor.
    """
    _Writer(source, plan, mesh, atoms or {}).run()


class _Writer:
    def __init__(
        self, source: Source, plan: Plan, mesh: Mesh, atoms: Mapping[str, Sequence[str]]
    ) -> None:
        self.source = source
        self.plan = plan
        self.mesh = mesh
        self.references = axis_references(plan, mesh, atoms)

    def run(self) -> None:
        exits: dict[Operation, list[int]] = {}
        for step in self.plan.steps:
            if isinstance(step, Compute):
                place = self.source.places.get(step.op)
                if place is None:
                    self._write(self.source.ops[step.op], step.outputs)
                elif self.plan.graph.kinds[step.op] == EXIT:
                    exits.setdefault(place.op, []).extend(step.outputs)
        for op, locals_ in exits.items():
            op.attributes.pop(CARRIES, None)
            if passes_through(op):
                op.attributes.pop(SHARDING, None)
            else:
                self._write(op, locals_)
        function = self.source.function
        arguments = self._border(function.arg_attrs, self.plan.arguments)
        results = self._border(function.res_attrs, self.plan.results)
        function.properties["arg_attrs"] = arguments
        function.properties["res_attrs"] = results
        self._drop_marks()
        module = self.source.module
        for name in (MESH, FORM):
            module.attributes.pop(name, None)
        for op in [op for op in module.body.block.ops if isinstance(op, MeshOp)]:
            op.detach()
            op.erase()
        first = module.body.block.first_op
        assert first is not None
        module.body.block.insert_op_before(MeshOp(NAME, MeshValue(self.mesh.axes)), first)

    def sharding(self, local: int) -> Sharding:
        """The placement of a local value, closed in every dimension."""
        dims = self.plan.values[local].spot.dims
        return Sharding(
            NAME,
            tuple(
                DimSharding(join_axes([self.references[axis] for axis in axes], self.mesh))
                for axes in dims
            ),
        )

    def _write(self, op: Operation, locals_: Sequence[int]) -> None:
        op.attributes.pop(NEST, None)
        if isinstance(op, ShardingConstraintOp):
            op.properties["sharding"] = ShardingAttr(self.sharding(locals_[0]))
        elif isinstance(op, ManualComputationOp):
            self._manual(op, locals_)
        elif locals_ and all(isinstance(result.type, TensorType) for result in op.results):
            op.attributes[SHARDING] = ShardingPerValueAttr(
                tuple(self.sharding(local) for local in locals_)
            )

    def _manual(self, op: ManualComputationOp, locals_: Sequence[int]) -> None:
        """The border that the region is given, over this mesh; axes inside stay as they are."""
        manual = set(op.manual_axes.names)
        for key, shardings in (
            ("in_shardings", op.in_shardings.data),
            ("out_shardings", op.out_shardings.data),
        ):
            parts = (manual_part(sharding, manual) for sharding in shardings)
            op.properties[key] = ShardingPerValueAttr(
                tuple(Sharding(NAME, part.dims) for part in parts)
            )

    def _border(self, old: ArrayAttr[DictionaryAttr] | None, locals_: Sequence[int]) -> Attribute:
        rows: list[Attribute] = []
        for index, local in enumerate(locals_):
            kept = dict(old.data[index].data) if old is not None else {}
            kept = {name: value for name, value in kept.items() if name not in _DROPPED}
            rows.append(DictionaryAttr({**kept, SHARDING: ShardingAttr(self.sharding(local))}))
        return cast("Attribute", ArrayAttr(rows))

    def _drop_marks(self) -> None:
        """`partir.stop` and `partir.replicate` are identities that Shardy does not know."""
        for op in list(self.source.ops.values()):
            if isinstance(op, ReplicateOp | StopOp):
                op.results[0].replace_all_uses_with(op.source)
                op.detach()
                op.erase()


def passes_through(op: Operation) -> bool:
    """Whether a loop carries something unchanged. XLA takes such carries out of the loop and keeps
    the old list of shardings, which is then too long; what is around the loop says the placement of
    its carries as well."""
    if op.name != "stablehlo.while":
        return False
    body = op.regions[1].blocks[0]
    assert body.last_op is not None
    return any(a is b for a, b in zip(body.args, body.last_op.operands, strict=True))


def axis_references(
    plan: Plan, mesh: Mesh, atoms: Mapping[str, Sequence[str]]
) -> tuple[AxisRef, ...]:
    """How Shardy names each axis of the plan: by its name in `mesh`, or as a part of that axis."""
    sizes = dict(zip(plan.axes, plan.sizes, strict=True))
    found: dict[str, AxisRef] = {}
    for axis in mesh.names:
        before = 1
        parts = atoms.get(axis, (axis,))
        for part in parts:
            whole = len(parts) == 1
            found[part] = AxisRef(axis) if whole else AxisRef(axis, before, sizes[part])
            before *= sizes[part]
    return tuple(found[axis] for axis in plan.axes)


def join_axes(axes: Sequence[AxisRef], mesh: Mesh) -> tuple[AxisRef, ...]:
    """Axes that tile one dimension, major to minor, with neighbouring parts of one axis joined."""
    found: list[AxisRef] = []
    for axis in axes:
        joined = _joined(found[-1], axis, mesh) if found else None
        if joined is None:
            found.append(axis)
        else:
            found[-1] = joined
    return tuple(found)


def _joined(major: AxisRef, minor: AxisRef, mesh: Mesh) -> AxisRef | None:
    """Two parts of one axis that follow each other, as one; the axis if they are all of it."""
    if major.size is None or major.before is None or minor.size is None:
        return None
    if major.name != minor.name or minor.before != major.before * major.size:
        return None
    size = major.size * minor.size
    if size == mesh.size(major.name):
        return AxisRef(major.name)
    return AxisRef(major.name, major.before, size)


@dataclass(frozen=True)
class ToSdyPass(ModulePass):
    """From nest form to Shardy's attributes: see the module."""

    name = "partir-to-sdy"

    mesh: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        session, source = open_session(op, self.mesh)
        to_sdy(source, session.plan(), session.state.mesh)
