"""When do groups of devices, channels, layouts and calls fit an op that reaches outside?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    TupleType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from .stablehlo_attrs import (
    ChannelHandleAttr,
    OutputOperandAliasAttr,
    ReplicaGroupMeshAxesAttr,
    TokenType,
)
from .stablehlo_base import HloOp, same_type, same_types, types_text
from .stablehlo_checks import check_length, dense_values

# --- devices -------------------------------------------------------------------------------


def groups_of(op: HloOp, attr: Attribute) -> tuple[tuple[int, ...], ...] | None:
    """The `replica_groups` of an op as device numbers; None if they are said by mesh axes."""
    if isinstance(attr, ReplicaGroupMeshAxesAttr):
        return None
    if not isinstance(attr, DenseIntOrFPElementsAttr):
        op.fail(f"replica_groups must be a table of integers, got: {attr}")
    table = cast(DenseIntOrFPElementsAttr[Any], attr)
    shape = table.get_shape()
    if len(shape) != 2:
        op.fail(f"replica_groups must have two dimensions, got: {list(shape)}")
    values, width = dense_values(table), shape[1]
    return tuple(values[row * width : (row + 1) * width] for row in range(shape[0]))


def check_groups(
    op: HloOp,
    attr: Attribute,
    *,
    even: bool = True,
    complete: bool = True,
    size: int | None = None,
) -> None:
    """Fails unless the groups have each device once, from 0 on.

    `even`: all groups have one size (else short ones end in -1); `size`: that size; `complete`:
    no device may be left out.
    """
    groups = groups_of(op, attr)
    if groups is None:
        return
    seen: set[int] = set()
    for number in (number for group in groups for number in group):
        if number == -1 and not even:
            continue
        if number < 0:
            op.fail(f"a replica number must not be negative, got: {number}")
        if number in seen:
            op.fail(f"replica is in two groups: {number}")
        seen.add(number)
    for number in range(len(seen)) if complete else ():
        if number not in seen:
            op.fail(f"replica is in no group: {number}")
    if size is not None and groups and len(groups[0]) != size:
        op.fail(f"groups must have {size} replica(s), got: {len(groups[0])}")


def check_global_ids(
    op: HloOp, global_ids: Attribute | None, channel: ChannelHandleAttr | None, attr: Attribute
) -> None:
    """Fails if devices are numbered through all partitions without a channel or groups."""
    if global_ids is None:
        return
    handle = 0 if channel is None else channel.handle
    if handle <= 0:
        op.fail(f"use_global_device_ids needs a positive channel handle, got: {handle}")
    groups = groups_of(op, attr)
    if groups is not None and not groups:
        op.fail("use_global_device_ids needs replica groups, got: none")


def check_pairs(op: HloOp, attr: Attribute | None) -> None:
    """Fails unless each device sends at most once and receives at most once."""
    if attr is None:
        return
    if not isinstance(attr, DenseIntOrFPElementsAttr):
        op.fail(f"source_target_pairs must be a table of integers, got: {attr}")
    table = cast(DenseIntOrFPElementsAttr[Any], attr)
    shape = table.get_shape()
    if len(shape) != 2 or shape[1] != 2:
        op.fail(f"source_target_pairs must have shape [N, 2], got: {list(shape)}")
    values = dense_values(table)
    for number in values:
        if number < 0:
            op.fail(f"a replica number must not be negative, got: {number}")
    for what, numbers in (("sources", values[::2]), ("targets", values[1::2])):
        if len(set(numbers)) != len(numbers):
            op.fail(f"{what} must not repeat, got: {list(numbers)}")


_CHANNEL_TYPES = {1: "device to device", 2: "device to host", 3: "host to device"}


def check_channel(op: HloOp, channel: ChannelHandleAttr, to_host: bool, host_type: int) -> None:
    """Fails unless the channel's type is `host_type` for a host transfer, else 1."""
    wanted = host_type if to_host else 1
    if channel.type != wanted:
        op.fail(f"channel type must be {wanted} ({_CHANNEL_TYPES[wanted]}), got: {channel.type}")


def check_token_last(op: HloOp, types: Sequence[Attribute]) -> None:
    """Fails unless the results are tensors and then a token."""
    if not types or not isinstance(types[-1], TokenType):
        op.fail(f"the last result must be a token, got: {types_text(types)}")
    for type_ in types[:-1]:
        if not isinstance(type_, (TensorType, TupleType)):
            op.fail(f"results before the token must be tensors, got: {type_}")


def check_layout(op: HloOp, layout: ArrayAttr[Attribute] | None, count: int) -> None:
    """Fails unless a layout has a list of integers for each of `count` values."""
    if layout is None:
        return
    check_length(op, "layout", layout.data, count)
    for entry in layout.data:
        if not isinstance(entry, ArrayAttr):
            op.fail(f"layout must have a list for each value, got: {entry}")
        for leaf in cast(ArrayAttr[Attribute], entry).data:
            if not isinstance(leaf, IntegerAttr):
                op.fail(f"layout must be of integers, got: {leaf}")


# --- custom calls --------------------------------------------------------------------------

_TYPED_FFI = 4


def check_call_layouts(
    op: HloOp,
    operands: tuple[Sequence[Attribute], ArrayAttr[Attribute] | None],
    results: tuple[Sequence[Attribute], ArrayAttr[Attribute] | None],
) -> None:
    """Fails unless both operands and results have a layout each, or none has."""
    if (operands[1] is None) != (results[1] is None):
        op.fail("layouts must be of operands and results both, got: one of them")
    types = results[0]
    if len(types) == 1 and isinstance(types[0], TupleType):
        types = types[0].types.data
    for what, values, layouts in (
        ("operand_layouts", operands[0], operands[1]),
        ("result_layouts", types, results[1]),
    ):
        if layouts is None:
            continue
        check_length(op, what, layouts.data, len(values))
        for type_, layout in zip(values, layouts.data, strict=True):
            _check_minor_to_major(op, type_, layout)


def _check_minor_to_major(op: HloOp, type_: Attribute, layout: Attribute) -> None:
    if isinstance(type_, TupleType):
        op.fail(f"a tuple has no layout, got: {type_}")
    if not isinstance(layout, DenseIntOrFPElementsAttr):
        op.fail(f"a layout must be a list of dimensions, got: {layout}")
    dims = dense_values(cast(DenseIntOrFPElementsAttr[Any], layout))
    if not isinstance(type_, TensorType):
        if dims:
            op.fail(f"only tensors have a layout, got: {type_}")
        return
    rank = len(cast(TensorType[Attribute], type_).shape.data)
    if sorted(dims) != list(range(rank)):
        op.fail(f"layout of {type_} must permute its dimensions, got: {list(dims)}")


def check_backend_config(op: HloOp, api_version: int, config: Attribute | None) -> None:
    """Fails unless the configuration is of the kind that the version of the interface takes."""
    if not 0 <= api_version <= _TYPED_FFI:
        op.fail(f"api_version must be in [0, {_TYPED_FFI}], got: {api_version}")
    if config is None:
        return
    typed = api_version == _TYPED_FFI
    if typed and not isinstance(config, DictionaryAttr):
        op.fail(f"backend_config must be a dictionary for api_version 4, got: {config}")
    if not typed and not isinstance(config, StringAttr):
        op.fail(f"backend_config must be a string, got: {config}")


def check_aliases(
    op: HloOp,
    aliases: ArrayAttr[Attribute] | None,
    operands: Sequence[Attribute],
    results: Sequence[Attribute],
) -> None:
    """Fails unless each alias pairs an operand with a result of its type."""
    for alias in aliases.data if aliases is not None else ():
        if not isinstance(alias, OutputOperandAliasAttr):
            op.fail(f"an alias is expected, got: {alias}")
        index = alias.operand_index
        if not 0 <= index < len(operands):
            op.fail(f"operand_index must be in [0, {len(operands)}), got: {index}")
        operand = _part(op, operands[index], alias.operand_tuple_indices)
        out: Attribute = TupleType(results) if len(results) > 1 else results[0]  # pyright: ignore
        result = _part(op, out, alias.output_tuple_indices)
        if not same_type(operand, result):
            op.fail(f"an alias must pair equal types, {operand}, got: {result}")


def _part(op: HloOp, type_: Attribute, path: Sequence[int]) -> Attribute:
    for index in path:
        if not isinstance(type_, TupleType) or not 0 <= index < len(type_.types.data):
            op.fail(f"tuple indices of an alias must be inside, got: {list(path)}")
        type_ = type_.types.data[index]
    return type_


# --- composites ----------------------------------------------------------------------------

_COMPOSITE_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+\Z")


def check_composite(
    op: HloOp,
    name: str,
    callee: Attribute,
    operands: Sequence[Attribute],
    results: Sequence[SSAValue],
) -> None:
    """Fails unless the name has a namespace and the decomposition these types."""
    if _COMPOSITE_NAME.match(name) is None:
        op.fail(f"name must be like my_namespace.my_op, got: {name}")
    module = _module_of(op)
    if module is None:
        return
    wanted = callee.root_reference.data if isinstance(callee, SymbolRefAttr) else ""
    function = next(
        (f for f in module.ops if isinstance(f, FuncOp) and f.sym_name.data == wanted), None
    )
    if function is None:
        op.fail(f"decomposition must be a function of the module, got: {callee}")
    type_ = function.function_type
    for what, mine, theirs in (
        ("operands", operands, type_.inputs.data),
        ("results", [value.type for value in results], type_.outputs.data),
    ):
        if not same_types(mine, theirs):
            op.fail(f"decomposition must have {what} {types_text(mine)}, got: {types_text(theirs)}")


def _module_of(op: Operation) -> ModuleOp | None:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, ModuleOp):
        parent = parent.parent_op()
    return parent
