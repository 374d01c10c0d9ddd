"""`partir-check-spmd`: what each device-local value varies over, and whether that is as declared.

Precondition: a device-local module with `partir.mesh`, collectives by mesh axis, and a border on
main (`partir.border`, as the lowering writes it). Postcondition: the module, unchanged, or a
failure.

Every value has the set of axes along which devices may hold different contents. An argument varies
over the axes that tile it, an op's results over what its operands vary over, and collectives change
the set: a gather or reduction takes axes away, a slice or an axis index adds them. It is an error

- if a result varies over an axis that does not tile it (a reduction is missing, or the result is
  falsely called whole);
- if a reduction runs over an axis along which all devices hold the same whole value (it would count
  it several times); what is made of a constant, an iota or a broadcast may be equal tiles;
- if a slice is taken along an axis over which the value varies already (parts of different wholes);
- if a collective stands in a region of control flow whose predicate varies within its groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    ModuleOp,
    StringAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ..partir_dialect.constants import Dense, to_numpy
from ..partir_dialect.mesh import Mesh
from ..partir_dialect.names import location_text
from ..partir_dialect.partir_attributes import Border, MeshAttr
from ..partir_dialect.partir_spmd import (
    AllGatherOp,
    AllReduceOp,
    AllSliceOp,
    AllToAllOp,
    AxisIndexOp,
    CollectivePermuteOp,
    ReduceScatterOp,
)

_MAKES_TILES = frozenset({"stablehlo.constant", "stablehlo.iota", "stablehlo.broadcast_in_dim"})
"""Ops whose results may be tiles although all devices hold the same: their tiles are equal."""

Axes = frozenset[str]
NOTHING: Axes = frozenset()


def _flat(axes: tuple[tuple[str, ...], ...]) -> Axes:
    return frozenset(axis for dim in axes for axis in dim)


def check_spmd(module: ModuleOp) -> None:
    """Raises `PassFailedException` at the first value that varies otherwise than declared."""
    mesh = module.attributes.get("partir.mesh")
    if not isinstance(mesh, MeshAttr):
        raise PassFailedException("the module has no partir.mesh")
    for function in module.body.block.ops:
        if isinstance(function, FuncOp) and function.body.blocks:
            _Checker(mesh.data).function(function)


@dataclass
class _Checker:
    """The axes over which each value varies; `control` is what the enclosing predicates vary
    over."""

    mesh: Mesh
    varies: dict[SSAValue, Axes] = field(default_factory=dict[SSAValue, Axes])
    whole: set[SSAValue] = field(default_factory=set[SSAValue])
    control: Axes = NOTHING

    def function(self, function: FuncOp) -> None:
        block = function.body.blocks[0]
        for argument, axes in zip(
            block.args, self._borders(function.arg_attrs, len(block.args)), strict=True
        ):
            self.varies[argument] = axes
            self.whole.add(argument)
        self.block(block)
        terminator = block.last_op
        assert isinstance(terminator, ReturnOp)
        declared = self._borders(function.res_attrs, len(terminator.operands))
        for index, (value, axes) in enumerate(zip(terminator.operands, declared, strict=True)):
            extra = self.of(value) - axes
            if extra:
                raise PassFailedException(
                    f"result {index} differs between devices along {_names(extra)}, where it is "
                    f"declared to be equal: a reduction or gather is missing after {_where(value)}"
                )

    def _borders(self, attributes: ArrayAttr[DictionaryAttr] | None, count: int) -> list[Axes]:
        rows = attributes.data if attributes is not None else ()
        borders = [row.data.get("partir.border") for row in rows]
        borders += [None] * (count - len(borders))
        return [self._border(border) for border in borders]

    def _border(self, border: Attribute | None) -> Axes:
        if not isinstance(border, StringAttr):
            return NOTHING
        try:
            axes = frozenset(Border.parse(border.data).placement.tiled_axes)
        except ValueError as error:
            raise PassFailedException(str(error)) from error
        for axis in axes:
            if axis not in self.mesh:
                raise PassFailedException(f"a border names an axis that the mesh lacks: {axis}")
        return axes

    def of(self, value: SSAValue) -> Axes:
        return self.varies.get(value, NOTHING)

    def block(self, block: Block) -> None:
        for op in block.ops:
            rule = _COLLECTIVES.get(type(op)) or _BY_NUMBER.get(op.name)
            if rule is not None:
                rule(self, op)
            elif op.regions and op.name in ("stablehlo.while", "stablehlo.case", "stablehlo.if"):
                self._control_flow(op)
            else:
                axes = NOTHING.union(*(self.of(operand) for operand in op.operands))
                for result in op.results:
                    self.varies[result] = axes
                if op.name not in _MAKES_TILES and self.whole.issuperset(op.operands):
                    self.whole.update(op.results)

    # --- collectives --------------------------------------------------------------------------

    def gather(self, op: Operation) -> None:
        assert isinstance(op, AllGatherOp | AllReduceOp)
        axes = _flat(op.dim_axes) if isinstance(op, AllGatherOp) else frozenset(op.axis_names)
        self._need_varying(op, axes)
        self.varies[op.results[0]] = self.of(op.source) - axes
        if op.source in self.whole:
            self.whole.add(op.results[0])

    def scatter(self, op: Operation) -> None:
        assert isinstance(op, ReduceScatterOp)
        self._need_varying(op, _flat(op.dim_axes))
        self.varies[op.results[0]] = self.of(op.source)

    def exchange(self, op: Operation) -> None:
        assert isinstance(op, AllToAllOp)
        self._need_varying(op, frozenset(op.axis_names))
        self.varies[op.results[0]] = self.of(op.source)

    def permute(self, op: Operation) -> None:
        assert isinstance(op, CollectivePermuteOp)
        self._need_uniform_control(op, frozenset(self.mesh.names))
        self.varies[op.results[0]] = self.of(op.source) | self._moved(op)

    def _moved(self, op: CollectivePermuteOp) -> Axes:
        """Axes along which some device gets nothing or another coordinate than its neighbours."""
        targets = {target for _, target in op.pairs}
        if len(targets) == self.mesh.devices:
            return NOTHING
        missing = set(range(self.mesh.devices)) - targets
        return frozenset(
            name
            for name in self.mesh.names
            if len({self.mesh.coordinate(device, name) for device in missing})
            < self.mesh.size(name)
        )

    def slice(self, op: Operation) -> None:
        assert isinstance(op, AllSliceOp)
        axes = _flat(op.dim_axes)
        both = self.of(op.source) & axes
        if both:
            raise PassFailedException(
                f"{op.name} slices along {_names(both)} what differs along it already: "
                f"{_where(op.source)}"
            )
        self.varies[op.results[0]] = self.of(op.source) | axes

    def index(self, op: Operation) -> None:
        assert isinstance(op, AxisIndexOp)
        self.varies[op.results[0]] = frozenset({op.axis.data})

    def given(self, op: Operation) -> None:
        """A collective by device number, as a region that was device-local already has it."""
        axes = self.of(op.operands[0])
        if op.name in _COMBINING:
            axes -= self._spanned(op)
        for result in op.results:
            self.varies[result] = axes

    def _spanned(self, op: Operation) -> Axes:
        """The axes along which every replica group goes all the way."""
        attribute = op.properties.get("replica_groups")
        if not isinstance(attribute, DenseIntOrFPElementsAttr):
            return NOTHING
        rows = to_numpy(cast("Dense", attribute))
        groups = [{int(d) for d in row if d >= 0} for row in rows.tolist()]
        return frozenset(
            name for name in self.mesh.names if all(self._closed(group, name) for group in groups)
        )

    def _closed(self, group: set[int], name: str) -> bool:
        size, stride = self.mesh.size(name), self.mesh.stride(name)
        return all(
            device + (k - self.mesh.coordinate(device, name)) * stride in group
            for device in group
            for k in range(size)
        )

    def number(self, op: Operation) -> None:
        self.varies[op.results[0]] = frozenset(self.mesh.names)

    def _need_varying(self, op: Operation, axes: Axes) -> None:
        same = axes - self.of(op.operands[0])
        if same and op.operands[0] in self.whole:
            raise PassFailedException(
                f"{op.name} runs along {_names(same)}, along which all devices hold the same: "
                f"{_where(op.operands[0])}"
            )
        self._need_uniform_control(op, axes)

    def _need_uniform_control(self, op: Operation, axes: Axes) -> None:
        split = axes & self.control
        if split:
            raise PassFailedException(
                f"{op.name} runs along {_names(split)}, along which devices may take different "
                f"branches: {location_text(op.location)}"
            )

    # --- control flow -------------------------------------------------------------------------

    def _control_flow(self, op: Operation) -> None:
        """To a fixed point: what a carry varies over grows with what the body yields."""
        carried = [self.of(operand) for operand in op.operands]
        if op.name != "stablehlo.while":
            carried = [NOTHING for _ in op.results]
        predicate = NOTHING if op.name == "stablehlo.while" else self.of(op.operands[0])
        outer = self.control
        while True:
            self.control = outer | predicate
            grown = [axes | predicate for axes in carried]
            for region in op.regions:
                yielded = self._region(region, carried)
                if len(yielded) == len(grown):
                    grown = [a | b for a, b in zip(grown, yielded, strict=True)]
                elif op.name == "stablehlo.while" and yielded:
                    predicate |= yielded[0]
            if grown == carried and self.control == outer | predicate:
                break
            carried = grown
        self.control = outer
        for result, axes in zip(op.results, carried, strict=True):
            self.varies[result] = axes

    def _region(self, region: Region, carried: list[Axes]) -> list[Axes]:
        block = region.blocks[0]
        for argument, axes in zip(block.args, carried, strict=False):
            self.varies[argument] = axes
        self.block(block)
        terminator = block.last_op
        return [self.of(value) for value in terminator.operands] if terminator else []


_COLLECTIVES: dict[type[Operation], Callable[[_Checker, Operation], None]] = {
    AllGatherOp: _Checker.gather,
    AllReduceOp: _Checker.gather,
    ReduceScatterOp: _Checker.scatter,
    AllToAllOp: _Checker.exchange,
    CollectivePermuteOp: _Checker.permute,
    AllSliceOp: _Checker.slice,
    AxisIndexOp: _Checker.index,
}


_COMBINING = ("stablehlo.all_reduce", "stablehlo.all_gather")
_BY_NUMBER: dict[str, Callable[[_Checker, Operation], None]] = {
    **dict.fromkeys(_COMBINING, _Checker.given),
    "stablehlo.partition_id": _Checker.number,
    "stablehlo.replica_id": _Checker.number,
}


def _names(axes: Axes) -> str:
    return ", ".join(sorted(axes))


def _where(value: SSAValue) -> str:
    if isinstance(value.owner, Operation):
        return f"{value.owner.name} at {location_text(value.owner.location)}"
    return f"an argument at {location_text(value.location)}"  # pyright: ignore


@dataclass(frozen=True)
class CheckSpmdPass(ModulePass):
    """Checks what device-local values vary over."""

    name = "partir-check-spmd"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_spmd(op)
