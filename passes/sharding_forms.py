"""How are the many ways to write a sharding made one? Before a program is prepared.

Precondition: any valid module. Postcondition: what says where a value is are `sdy.sharding`
attributes of main's arguments and results and of ops, and `sdy.sharding_constraint` ops; what a
`sdy.manual_computation` takes and gives has a constraint at its border. Shardings of the functions
that will be inlined, `sdy.reshard`, Shardy's collectives, data flow edges, groups and the older
`mhlo.sharding` (with its custom calls) are written in these words. Barriers become `partir.stop`.

```mlir
%1 = sdy.reshard %0 <@mesh, [{"x"}]> : tensor<8xf32>
```
becomes `sdy.sharding_constraint`, which an op of the same meaning is to us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..engine.build import main_of
from ..partir_dialect.errors import LoweringError, MeshError, PartirError
from ..partir_dialect.mesh import Mesh
from ..partir_dialect.names import location_text
from ..partir_dialect.partir import StopOp
from ..partir_dialect.sdy import (
    AxisRef,
    DimSharding,
    ManualComputationOp,
    MeshOp,
    MeshValue,
    NamedComputationOp,
    Sharding,
    ShardingAttr,
    ShardingConstraintOp,
    ShardingPerValueAttr,
)
from ..partir_dialect.sdy_attrs import PROPAGATION_DIRECTIONS
from ..partir_dialect.sdy_checks import mesh_of
from ..partir_dialect.stablehlo import ConstantOp
from .inline import clone_op
from .manual_region import inline_manual, manual_part
from .mhlo_sharding import elements_of, sharding_of_text

SHARDING = "sdy.sharding"
MHLO = "mhlo.sharding"
GROUP = "partir.group"
CONSTRAINT = "sdy.sharding_constraint"
MANUAL = "sdy.manual_computation"
_MESH_NAME = "mesh"


class ShardingError(LoweringError):
    """A sharding in a program that cannot be expressed; `written` is its text."""

    def __init__(self, message: str, *, written: str = "", place: str = "") -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.written = written


def place_of(op: Operation) -> str:
    """Where an op is, for messages: its location if it has one, and its name."""
    place = location_text(op.location)
    return f"{place}: {op.name}" if place else op.name


# --- meshes -----------------------------------------------------------------------------------


def shardings_in(op: Operation) -> Iterator[Sharding]:
    """Every sharding that the op itself carries."""
    for table in (op.attributes, op.properties):
        for attribute in table.values():
            yield from _shardings(attribute)


def _shardings(attribute: Attribute) -> Iterator[Sharding]:
    if isinstance(attribute, ShardingAttr):
        yield attribute.data
    elif isinstance(attribute, ShardingPerValueAttr):
        yield from attribute.data
    elif isinstance(attribute, ArrayAttr):
        for element in cast("ArrayAttr[Attribute]", attribute).data:
            yield from _shardings(element)
    elif isinstance(attribute, DictionaryAttr):
        for element in attribute.data.values():
            yield from _shardings(element)


def program_mesh(module: ModuleOp) -> MeshValue | None:
    """The mesh that the shardings of the program speak of, or the one that it defines.

    None if it has none. Raises `MeshError` for shardings over meshes that are not equal.
    """
    used: dict[str, MeshValue] = {}
    for op in module.walk():
        for sharding in shardings_in(op):
            mesh = mesh_of(op, sharding)
            if mesh is not None and mesh.axes:
                used.setdefault(str(sharding.mesh), mesh)
    if not used:
        defined = [op.mesh.data for op in module.body.block.ops if isinstance(op, MeshOp)]
        used = {str(mesh): mesh for mesh in defined if mesh.axes}
        if len(used) > 1:
            return None
    meshes = list(used.items())
    for name, mesh in meshes[1:]:
        if mesh != meshes[0][1]:
            raise MeshError(
                f"the shardings of a program must be over one mesh: @{meshes[0][0]} is "
                f"{meshes[0][1]}, @{name} is {mesh}"
            )
    return meshes[0][1] if meshes else None


def has_shardings(module: ModuleOp) -> bool:
    """Whether something in the program says where a value is."""
    return any(
        next(shardings_in(op), None) is not None or next(_old(op), None) is not None
        for op in module.walk()
    )


def _old(op: Operation) -> Iterator[str]:
    """The `mhlo.sharding` texts of an op, and of a function's arguments and results."""
    found = [op.attributes.get(MHLO)]
    if isinstance(op, FuncOp):
        for rows in (op.arg_attrs, op.res_attrs):
            found.extend(row.data.get(MHLO) for row in (rows.data if rows is not None else ()))
    for text in found:
        if isinstance(text, StringAttr):
            yield text.data


def choose_mesh(module: ModuleOp, mesh: Mesh | None) -> Mesh | None:
    """The mesh to partition over: the given one, which must have the program's axes, or else the
    program's. Raises `MeshError`."""
    own = program_mesh(module)
    if own is None:
        return mesh
    if mesh is None:
        return Mesh(own.axes)
    for name, size in own.axes:
        if name not in mesh or mesh.size(name) != size:
            raise MeshError(f"the program's shardings are over the mesh {own}, got: {mesh}")
    return mesh


# --- one way to write it ----------------------------------------------------------------------


def normalise_shardings(module: ModuleOp, mesh: Mesh | None, *, keep: bool) -> list[str]:
    """Writes all shardings in the module in one way, in place; with `keep` false, all but those of
    manual computations go. Returns notes on what is not as it was written.

    Raises `ShardingError` for what cannot be expressed.
    """
    return _Normaliser(module, mesh, keep=keep).run()


class _Normaliser:
    def __init__(self, module: ModuleOp, mesh: Mesh | None, *, keep: bool) -> None:
        self.module = module
        self.mesh = mesh
        self.keep = keep
        self.notes: list[str] = []
        self.symbol = _symbol(module)
        self.device_ids = ()
        if mesh is not None and keep:
            own = program_mesh(module)
            self.device_ids = own.device_ids if own is not None else ()

    def run(self) -> list[str]:
        if self.device_ids:
            self.notes.append(
                f"the program's mesh numbers its devices {list(self.device_ids)}; the result is "
                "numbered by place in the mesh: give it the devices in that order"
            )
        if self.mesh is not None and any(next(_old(op), None) for op in self.module.walk()):
            self._old_spelling()
        main = main_of(self.module)
        for function in [op for op in self.module.body.block.ops if isinstance(op, FuncOp)]:
            if function is not main:
                self._inner_function(function)
        for op in list(self.module.walk()):
            self._op(op)
        if not self.keep:
            _drop_attributes(self.module)
        return self.notes

    def _op(self, op: Operation) -> None:
        if op.parent is None or _in_manual(op):
            return
        rewrite = _REWRITES.get(op.name)
        if rewrite is not None:
            rewrite(self, op)
        elif isinstance(op, CallOp) and SHARDING in op.attributes:
            self._call(op)

    # --- ops ----------------------------------------------------------------------------------

    def constraint(self, value: SSAValue, sharding: Sharding, said: Operation) -> Operation:
        """Puts a constraint on the value where it is made, for all other uses; `said` says it."""
        made = ShardingConstraintOp(value, sharding)
        made.location = said.location
        owner = value.owner
        if isinstance(owner, Block):
            first = owner.first_op
            assert first is not None
            owner.insert_op_before(made, first)
        else:
            assert owner.parent is not None
            owner.parent.insert_op_after(made, owner)
        value.replace_uses_with_if(made.results[0], lambda use: use.operation is not made)
        return made

    def _by_sharding(self, op: Operation) -> None:
        """Ops of one operand that say how it is cut: a constraint, or with `keep` false nothing."""
        attribute = op.properties.get("sharding") or op.properties.get("out_sharding")
        around = op.parent_op()
        inside = around is not None and around.name not in _PLACING  # a reduction's body, say
        if not isinstance(attribute, ShardingAttr) or not self.keep or inside:
            self._drop(op)
            return
        self._speaks_of_one_mesh(op, attribute.data)
        if op.name != CONSTRAINT:
            made = ShardingConstraintOp(op.operands[0], attribute.data)
            made.location = op.location
            made.results[0].name_hint = op.results[0].name_hint
            _replace(op, made)

    def _reduction(self, op: Operation) -> None:
        """Shardy's explicit sums finish what an op before them left partial; on anything else they
        would count a value once for each device."""
        if not _leaves_partial(op.operands[0]):
            raise ShardingError(
                "sums over devices what the program does not say is partial",
                place=place_of(op),
                written=op.name,
            )
        self._by_sharding(op)

    def _refuse(self, op: Operation) -> None:
        raise ShardingError("cannot be expressed", place=place_of(op), written=op.name)

    def _drop(self, op: Operation) -> None:
        if op.results:
            op.results[0].replace_all_uses_with(op.operands[0])
        op.detach()
        op.erase()

    def _group(self, op: Operation) -> None:
        if self.keep:
            rank = len(op.operands[0].type.get_shape())  # pyright: ignore
            group = op.properties["group_id"]
            assert isinstance(group, IntegerAttr)
            sharding = Sharding(self.symbol, (DimSharding((), True),) * rank)
            made = self.constraint(op.operands[0], sharding, op)
            made.attributes[GROUP] = cast("Attribute", group)
        op.detach()
        op.erase()

    def _barrier(self, op: Operation) -> None:
        direction = op.properties["allowed_direction"]
        assert isinstance(direction, IntegerAttr)
        word = PROPAGATION_DIRECTIONS[direction.value.data]
        if not self.keep or self.mesh is None or word == "BOTH":
            self._drop(op)
            return
        if word != "NONE":
            self.notes.append(f"{place_of(op)}: lets nothing pass, wanted: {word}")
        made = StopOp(op.operands[0], list(self.mesh.names))
        made.location = op.location
        _replace(op, made)

    def _constant(self, op: Operation) -> None:
        made = ConstantOp.create(
            result_types=[op.results[0].type],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            location=op.location,
        )
        _replace(op, made)

    def _named(self, op: Operation) -> None:
        assert isinstance(op, NamedComputationOp)
        block = op.body.block
        values: dict[SSAValue, SSAValue] = {}
        ins = op.in_shardings.data if op.in_shardings is not None else ()
        outs = op.out_shardings.data if op.out_shardings is not None else ()
        for k, (argument, operand) in enumerate(zip(block.args, op.operands, strict=True)):
            values[argument] = self._constrained(operand, ins[k] if k < len(ins) else None, op)
        last = block.last_op
        assert last is not None and op.parent is not None
        placed = [clone_op(inner, values) for inner in block.ops if inner is not last]
        op.parent.insert_ops_before(placed, op)
        for k, (result, value) in enumerate(zip(op.results, last.operands, strict=True)):
            new = self._constrained(
                values.get(value, value), outs[k] if k < len(outs) else None, op
            )
            result.replace_all_uses_with(new)
        op.detach()
        op.erase()
        for inner in placed:
            for each in list(inner.walk()):
                self._op(each)

    def _constrained(self, value: SSAValue, sharding: Sharding | None, before: Operation):
        if sharding is None or not self.keep:
            return value
        made = ShardingConstraintOp(value, sharding)
        made.location = before.location
        assert before.parent is not None
        before.parent.insert_op_before(made, before)
        return made.results[0]

    # --- functions that will be inlined -------------------------------------------------------

    def _inner_function(self, function: FuncOp) -> None:
        if not function.body.blocks:
            return
        block = function.body.block
        for argument, sharding in zip(
            block.args, _border(function.arg_attrs, len(block.args)), strict=True
        ):
            if sharding is not None and self.keep:
                made = ShardingConstraintOp(argument, sharding)
                block.insert_op_before(made, cast("Operation", block.first_op))
                argument.replace_uses_with_if(
                    made.results[0], lambda use, made=made: use.operation is not made
                )
        last = block.last_op
        assert last is not None
        for k, sharding in enumerate(_border(function.res_attrs, len(last.operands))):
            last.operands[k] = self._constrained(last.operands[k], sharding, last)

    def _call(self, op: CallOp) -> None:
        attribute = op.attributes.pop(SHARDING)
        if isinstance(attribute, ShardingPerValueAttr) and self.keep:
            for result, sharding in zip(op.results, attribute.data, strict=True):
                if result.uses.get_length():
                    self.constraint(result, sharding, op)

    # --- manual computations ------------------------------------------------------------------

    def _manual(self, op: Operation) -> None:
        """Pins of the manual axes at the border; the other axes are whole inside."""
        assert isinstance(op, ManualComputationOp)
        if self.mesh is None:
            return
        self._check_manual(op)
        for side in (*op.in_shardings.data, *op.out_shardings.data):
            self._speaks_of_one_mesh(op, side)
        manual = set(op.manual_axes.names)
        free = {
            axis.name
            for sharding in (*op.in_shardings.data, *op.out_shardings.data)
            for axis in sharding.axes_used()
            if axis.name not in manual
        }
        if free:
            self.notes.append(f"{place_of(op)}: inside it values are whole along {sorted(free)}")
        for k, sharding in enumerate(op.in_shardings.data):
            if isinstance(op.operands[k].type, TensorType):
                pin = ShardingConstraintOp(op.operands[k], manual_part(sharding, manual))
                pin.location = op.location
                cast("Block", op.parent).insert_op_before(pin, op)
                op.operands[k] = pin.results[0]
        for result, sharding in zip(op.results, op.out_shardings.data, strict=True):
            if isinstance(result.type, TensorType):
                pin = self.constraint(result, manual_part(sharding, manual), op)
                if self.keep and not manual.issuperset(a.name for a in sharding.axes_used()):
                    self.constraint(pin.results[0], sharding, pin)

    def _check_manual(self, op: ManualComputationOp) -> None:
        assert self.mesh is not None
        for each in reversed([each for region in op.regions for each in region.walk()]):
            if isinstance(each, ManualComputationOp):
                _inline_uncut(each)
        inner = [each for region in op.regions for each in region.walk()]
        for each in inner:
            if each.name in (MANUAL, *_COMMUNICATING):
                raise ShardingError(
                    "cannot be expressed inside a manual computation",
                    place=place_of(each),
                    written=each.name,
                )
            if each.name in (CONSTRAINT, "sdy.reshard", "sdy.propagation_barrier"):
                self._drop(each)
            elif each.name == "sdy.constant":
                self._constant(each)
            else:
                each.attributes.pop(SHARDING, None)
        talks = any(each.name.endswith(_TALKS) for each in inner)
        border = (*op.in_shardings.data, *op.out_shardings.data)
        own = mesh_of(op, border[0]) if border else None
        if talks and own is not None and (own.axes != self.mesh.axes or own.device_ids):
            raise ShardingError(
                "collectives by device number need devices numbered as in the mesh "
                f"{self.mesh}, got: {own}",
                place=place_of(op),
                written=op.name,
            )

    def _speaks_of_one_mesh(self, op: Operation, sharding: Sharding) -> None:
        own = mesh_of(op, sharding)
        if own is None or self.mesh is None:
            return
        for name, size in own.axes:
            if name not in self.mesh or self.mesh.size(name) != size:
                raise ShardingError(
                    f"its mesh must be that of the program, {self.mesh}, got: {own}",
                    place=place_of(op),
                    written=str(sharding),
                )

    # --- the older spelling -------------------------------------------------------------------

    def _old_spelling(self) -> None:
        from .mhlo_manual import manual_regions

        mesh = self.mesh
        assert mesh is not None
        if _symbol_defined(self.module, self.symbol) is None:
            first = cast("Operation", self.module.body.block.first_op)
            self.module.body.block.insert_op_before(
                MeshOp(self.symbol, MeshValue(mesh.axes)), first
            )
        for op in list(self.module.walk()):
            if isinstance(op, FuncOp):
                self._old_border(op)
        manual_regions(self.module, mesh, self.symbol)
        for op in list(self.module.walk()):
            if op.name == "stablehlo.custom_call" and _target(op) == "Sharding":
                self._old_constraint(op)
            elif MHLO in op.attributes:
                self._old_op(op)

    def _old_sharding(self, text: str, type_: Attribute, place: str) -> Sharding | None:
        assert self.mesh is not None
        rank = len(type_.get_shape()) if isinstance(type_, TensorType) else 0
        try:
            return sharding_of_text(text, rank, self.mesh, self.symbol)
        except PartirError as error:
            raise ShardingError(error.message, written=text, place=place) from error

    def _old_border(self, function: FuncOp) -> None:
        kind = function.function_type
        for key, types in (("arg_attrs", kind.inputs.data), ("res_attrs", kind.outputs.data)):
            old = function.properties.get(key)
            if not isinstance(old, ArrayAttr):
                continue
            rows: list[Attribute] = []
            for row, type_ in zip(cast("ArrayAttr[DictionaryAttr]", old), types, strict=True):
                table = dict(row.data)
                text = table.pop(MHLO, None)
                if isinstance(text, StringAttr) and SHARDING not in table:
                    side = "an argument" if key == "arg_attrs" else "a result"
                    name = f"{side} of @{function.sym_name.data}"
                    sharding = self._old_sharding(text.data, type_, name)
                    if sharding is not None:
                        table[SHARDING] = ShardingAttr(sharding)
                rows.append(DictionaryAttr(table))
            function.properties[key] = cast("Attribute", ArrayAttr(rows))

    def _old_constraint(self, op: Operation) -> None:
        text = op.attributes.get(MHLO)
        sharding = None
        if isinstance(text, StringAttr):
            sharding = self._old_sharding(text.data, op.results[0].type, place_of(op))
        if sharding is None or not self.keep:
            self._drop(op)
            return
        opened = _unspecified(op)
        dims = tuple(
            DimSharding(dim.axes, is_open=True) if d in opened else dim
            for d, dim in enumerate(sharding.dims)
        )
        made = ShardingConstraintOp(op.operands[0], Sharding(self.symbol, dims))
        made.location = op.location
        _replace(op, made)

    def _old_op(self, op: Operation) -> None:
        text = op.attributes.pop(MHLO)
        if not isinstance(text, StringAttr) or SHARDING in op.attributes or not op.results:
            return
        texts = elements_of(text.data)
        if len(texts) != len(op.results):
            texts = [text.data] * len(op.results)
        found = [
            self._old_sharding(each, result.type, place_of(op))
            for each, result in zip(texts, op.results, strict=True)
        ]
        if all(sharding is not None for sharding in found):
            op.attributes[SHARDING] = ShardingPerValueAttr(
                tuple(sharding for sharding in found if sharding is not None)
            )


_COMMUNICATING = tuple(
    f"sdy.{name}"
    for name in (
        "all_gather all_slice all_to_all collective_permute all_reduce reduce_scatter "
        "sharded_to_unreduced replicated_to_unreduced sharding_group named_computation"
    ).split()
)
_TALKS = (
    "all_gather",
    "all_reduce",
    "all_to_all",
    "collective_permute",
    "collective_broadcast",
    "reduce_scatter",
    "partition_id",
    "replica_id",
)

_PLACING = frozenset(
    {"func.func", "stablehlo.while", "stablehlo.case", "stablehlo.if", "sdy.named_computation"}
)
"""Ops in whose regions values have placements of their own."""

_REWRITES: dict[str, Callable[[_Normaliser, Operation], None]] = {
    **{
        f"sdy.{name}": _Normaliser._by_sharding  # pyright: ignore[reportPrivateUsage]
        for name in (
            "sharding_constraint reshard data_flow_edge func_data_flow_edge all_gather all_slice "
            "all_to_all collective_permute"
        ).split()
    },
    "sdy.all_reduce": _Normaliser._reduction,  # pyright: ignore[reportPrivateUsage]
    "sdy.reduce_scatter": _Normaliser._reduction,  # pyright: ignore[reportPrivateUsage]
    "sdy.sharded_to_unreduced": _Normaliser._refuse,  # pyright: ignore[reportPrivateUsage]
    "sdy.replicated_to_unreduced": _Normaliser._refuse,  # pyright: ignore[reportPrivateUsage]
    "sdy.sharding_group": _Normaliser._group,  # pyright: ignore[reportPrivateUsage]
    "sdy.propagation_barrier": _Normaliser._barrier,  # pyright: ignore[reportPrivateUsage]
    "sdy.constant": _Normaliser._constant,  # pyright: ignore[reportPrivateUsage]
    "sdy.named_computation": _Normaliser._named,  # pyright: ignore[reportPrivateUsage]
    MANUAL: _Normaliser._manual,  # pyright: ignore[reportPrivateUsage]
}


# --- small things -----------------------------------------------------------------------------


def _replace(op: Operation, made: Operation) -> None:
    assert op.parent is not None
    op.parent.insert_op_before(made, op)
    op.results[0].replace_all_uses_with(made.results[0])
    op.detach()
    op.erase()


def _inline_uncut(op: ManualComputationOp) -> None:
    """A region inside a region that cuts nothing (as JAX writes for a device's number) is the same
    ops: further axes are whole there already."""
    manual = set(op.manual_axes.names)
    for sharding in (*op.in_shardings.data, *op.out_shardings.data):
        if any(axis.name in manual for dim in sharding.dims for axis in dim.axes):
            return
    assert op.parent is not None
    results, _ = inline_manual(op, op.operands, op.parent, op)
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()


def _in_manual(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None:
        if parent.name == MANUAL:
            return True
        parent = parent.parent_op()
    return False


def _leaves_partial(value: SSAValue) -> bool:
    """Whether the op that makes the value may leave it partial, so that a sum finishes it."""
    from ..partir_dialect.rules import rule_of

    owner = value.owner
    while isinstance(owner, Operation) and owner.name in (CONSTRAINT, *_FINISHING):
        owner = owner.operands[0].owner
    return isinstance(owner, Operation) and any(
        factor.reducer is not None for factor in rule_of(owner).factors
    )


_FINISHING = ("sdy.all_reduce", "sdy.reduce_scatter", "sdy.reshard")


def _border(rows: ArrayAttr[DictionaryAttr] | None, count: int) -> Sequence[Sharding | None]:
    """The sharding of each argument or result of a function."""
    found: list[Sharding | None] = []
    for row in rows.data if rows is not None else ():
        attribute = row.data.get(SHARDING)
        found.append(attribute.data if isinstance(attribute, ShardingAttr) else None)
    return found + [None] * (count - len(found))


def _drop_attributes(module: ModuleOp) -> None:
    for op in module.walk():
        op.attributes.pop(SHARDING, None)
        if isinstance(op, FuncOp):
            for key in ("arg_attrs", "res_attrs"):
                rows = op.properties.get(key)
                if isinstance(rows, ArrayAttr):
                    kept = [
                        DictionaryAttr({k: v for k, v in row.data.items() if k != SHARDING})
                        for row in cast("ArrayAttr[DictionaryAttr]", rows)
                    ]
                    op.properties[key] = cast("Attribute", ArrayAttr(kept))


def _symbol(module: ModuleOp) -> str:
    """The name of a mesh that the module defines, or one that is free."""
    for op in module.body.block.ops:
        if isinstance(op, MeshOp) and op.mesh.data.axes:
            return op.sym_name.data
    return _MESH_NAME


def _symbol_defined(module: ModuleOp, name: str) -> MeshValue | None:
    for op in module.body.block.ops:
        if isinstance(op, MeshOp) and op.sym_name.data == name:
            return op.mesh.data
    return None


def _target(op: Operation) -> str:
    name = op.properties.get("call_target_name")
    return name.data if isinstance(name, StringAttr) else ""


def _unspecified(op: Operation) -> set[int]:
    """The dimensions that a `@Sharding` call leaves open."""
    config = op.properties.get("backend_config")
    text = config.data if isinstance(config, StringAttr) else ""
    _, _, rest = text.partition("unspecified_dims=[")
    return {int(word) for word in rest.partition("]")[0].split(",") if word.strip().isdecimal()}


def axes_in(sharding: Sharding) -> tuple[AxisRef, ...]:
    """The axes by which the dimensions are cut, in order."""
    return tuple(axis for dim in sharding.dims for axis in dim.axes)
