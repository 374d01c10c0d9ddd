"""Is a module in nest form, and is every nest in it one that its op can have?

In nest form the module says so (`partir.form = "nests"`), and every op has `partir.nest`, even
empty: a pass that made an op must say what its nest is, or the op would silently be replicated.
Arguments and results have theirs in `arg_attrs` and `res_attrs`; `while`, `case` and `if` have one
for each result, in `partir.carries`. Terminators have none (they take what the carries and results
say), nor have the ops in the body of a `reduce`, a `sort` and the like, which is a function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from ..partir_dialect.mesh import Mesh
from ..partir_dialect.names import argument_names, location_text, result_names
from ..partir_dialect.partir_attributes import NestAttr, NestEntry, factor_letter
from ..partir_dialect.partir_types import CARRIES, FORM, NEST, axis_size, elements, mesh_of
from ..partir_dialect.rules import rule_of
from ..partir_dialect.rules.base import Factor, Kind, Linearity, Rule
from ..partir_dialect.rules.reducers import is_identity
from .generated import PLACED_REGIONS

NESTS = "nests"
EMPTY = NestAttr()


def is_nest_form(module: ModuleOp) -> bool:
    """Whether the module says that it is in nest form."""
    return module.attributes.get(FORM) == StringAttr(NESTS)


def _functions(module: ModuleOp) -> Iterator[FuncOp]:
    return (op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks)


def _all_blocks(module: ModuleOp) -> Iterator[Block]:
    for func in _functions(module):
        for block in func.body.blocks:
            yield from _blocks(block)


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for op in block.ops:
        if op.name in PLACED_REGIONS:
            for region in op.regions:
                for inner in region.blocks:
                    yield from _blocks(inner)


def _has_nest(op: Operation) -> bool:
    return op.name not in PLACED_REGIONS and not op.has_trait(IsTerminator)


def placed_blocks(module: ModuleOp) -> Iterator[tuple[Block, list[Operation]]]:
    """The blocks of functions and of control flow, outermost first, each with its ops that have a
    nest."""
    for block in _all_blocks(module):
        yield block, [op for op in block.ops if _has_nest(op)]


def carriers(module: ModuleOp) -> Iterator[Operation]:
    """The ops that have a nest for each result: `while`, `case`, `if`."""
    for block in _all_blocks(module):
        yield from (op for op in block.ops if op.name in PLACED_REGIONS)


def identity_rule(shape: Sequence[int]) -> Rule:
    """The rule of an argument, a result or a carry: factor d is dimension d."""
    dims = tuple((d,) for d in range(len(shape)))
    return Rule(tuple(Factor(size) for size in shape), (dims,), (dims,))


def partial_axes(nest: Sequence[NestEntry], rule: Rule, result: int) -> set[str]:
    """The axes over which result number `result` is a partial sum inside the loops of its op."""
    axes: set[str] = set()
    for entry in nest:
        if entry.factor is None:
            reduces = entry.pending is not None
        else:
            tiled = any(entry.factor in made_of for made_of in rule.results[result])
            reduces = rule.factors[entry.factor].reducer is not None and not tiled
        if reduces:
            axes.add(entry.axis)
    return axes


# --- verifying ----------------------------------------------------------------------------------


def _at(op: Operation, message: str) -> VerifyException:
    place = location_text(op.location)
    return VerifyException(f"{place}: {op.name}: {message}" if place else f"{op.name}: {message}")


def _nest(attribute: Attribute | None, what: str) -> NestAttr:
    if attribute is None:
        raise VerifyException(f"nest form, but there is no {NEST} on {what}")
    if not isinstance(attribute, NestAttr):
        raise VerifyException(f"{NEST} of {what} is a #partir.nest, got: {attribute}")
    return attribute


def _check_entries(nest: NestAttr, rule: Rule, mesh: Mesh) -> None:
    for entry in nest.data:
        axis_size(mesh, entry.axis)
        if entry.factor is None:
            continue
        if entry.factor >= len(rule.factors):
            known = ", ".join(factor_letter(f) for f in range(len(rule.factors))) or "none"
            raise VerifyException(
                f"the rule has no such factor, it has {known}, got: {factor_letter(entry.factor)}"
            )
        info = rule.factors[entry.factor]
        if info.kind is Kind.BLOCKED or (info.kind is Kind.SPECIAL and info.rewrite is None):
            raise VerifyException(f"a blocked factor cannot be tiled, got: {entry}")


def _check_pending(op: Operation, nest: NestAttr, rule: Rule) -> None:
    """A pending sum passes only through what is linear in the operands that bring it."""
    for entry in nest.data:
        if entry.pending is None:
            continue
        brings = frozenset(k for k, v in enumerate(op.operands) if entry.axis in _partial(v))
        if not brings:
            raise VerifyException(f"no operand brings a partial result, got: {entry}")
        if not any(_passes(op, brings, entry.pending, linear) for linear in rule.linear):
            got = ", ".join(map(str, sorted(brings)))
            raise VerifyException(f"{entry} does not pass through operands {got} together")


def _passes(op: Operation, brings: frozenset[int], reducer: str, linear: Linearity) -> bool:
    if reducer not in linear.reducers or not brings <= linear.operands:
        return False
    others = linear.operands - brings
    if linear.joint:
        return all(is_identity(op.operands[k], reducer) for k in others)
    return len(brings) == 1


def _partial(value: SSAValue) -> set[str]:
    owner = value.owner
    nest = owner.attributes.get(NEST) if isinstance(owner, Operation) else None
    if not isinstance(owner, Operation) or not isinstance(nest, NestAttr) or not nest.data:
        return set()
    return partial_axes(nest.data, rule_of(owner), [*owner.results].index(cast("OpResult", value)))


def _check_op(op: Operation, mesh: Mesh) -> None:
    try:
        nest = _nest(op.attributes.get(NEST), "the op")
        if nest.data:
            rule = rule_of(op)
            _check_entries(nest, rule, mesh)
            _check_pending(op, nest, rule)
    except VerifyException as error:
        raise _at(op, str(error)) from error


def _check_identity(nest: NestAttr, type_: Attribute, mesh: Mesh) -> None:
    shape: tuple[int, ...] = getattr(type_, "get_shape", tuple)()
    for entry in nest.data:
        if entry.pending is not None:
            raise VerifyException(f"an identity takes no pending sum, got: {entry}")
        if entry.factor is not None and entry.factor >= len(shape):
            raise VerifyException(
                f"a tile of a dimension that does not exist in {type_}, got: {entry}"
            )
    _check_entries(nest, identity_rule(shape), mesh)


def _check_border(func: FuncOp, mesh: Mesh) -> None:
    sides = (
        ("argument", argument_names(func), func.function_type.inputs.data, func.arg_attrs),
        ("result", result_names(func), func.function_type.outputs.data, func.res_attrs),
    )
    for what, names, types, attributes in sides:
        for k, (name, type_) in enumerate(zip(names, types, strict=True)):
            given = attributes.data[k].data.get(NEST) if attributes is not None else None
            try:
                _check_identity(_nest(given, f"{what} {name}"), type_, mesh)
            except VerifyException as error:
                raise _at(func, f"{what} {name}: {error}") from error


def _check_carries(op: Operation, mesh: Mesh) -> None:
    carries = op.attributes.get(CARRIES)
    try:
        nests = elements(carries)
        if len(nests) != len(op.results):
            raise VerifyException(
                f"nest form, but {CARRIES} does not have a nest for each of {len(op.results)} "
                f"results, got: {carries}"
            )
        for nest, result in zip(nests, op.results, strict=True):
            _check_identity(_nest(nest, "a carry"), result.type, mesh)
    except VerifyException as error:
        raise _at(op, str(error)) from error


def verify_nests(module: ModuleOp) -> None:
    """Raises `VerifyException` unless the module is in nest form and every nest in it is sound."""
    if not is_nest_form(module):
        got = module.attributes.get(FORM)
        raise VerifyException(f'nest form is needed ({FORM} = "{NESTS}"), got: {got}')
    mesh = mesh_of(module)
    if mesh is None:
        raise VerifyException("nest form needs a mesh, but the module has no partir.mesh")
    for func in _functions(module):
        _check_border(func, mesh)
    for op in carriers(module):
        _check_carries(op, mesh)
    for _, ops in placed_blocks(module):
        for op in ops:
            _check_op(op, mesh)


# --- making -------------------------------------------------------------------------------------


def _with_nests(attributes: ArrayAttr[DictionaryAttr] | None, count: int) -> list[DictionaryAttr]:
    given = attributes.data if attributes is not None else [DictionaryAttr({})] * count
    return [DictionaryAttr({NEST: EMPTY} | dict(entry.data)) for entry in given]


def add_empty_nests(module: ModuleOp) -> None:
    """Says that the module is in nest form; what has no nest yet gets an empty one."""
    module.attributes[FORM] = StringAttr(NESTS)
    for func in _functions(module):
        types = func.function_type
        func.properties["arg_attrs"] = ArrayAttr(_with_nests(func.arg_attrs, len(types.inputs)))
        func.properties["res_attrs"] = ArrayAttr(_with_nests(func.res_attrs, len(types.outputs)))
    for op in carriers(module):
        op.attributes.setdefault(CARRIES, ArrayAttr([EMPTY] * len(op.results)))
    for _, ops in placed_blocks(module):
        for op in ops:
            op.attributes.setdefault(NEST, EMPTY)


def drop_empty_nests(module: ModuleOp) -> None:
    """Takes empty nests off arguments, results and carries."""
    for func in _functions(module):
        for name in ("arg_attrs", "res_attrs"):
            kept = [_without_empty(entry) for entry in elements(func.properties.get(name))]
            if any(entry.data for entry in kept):
                func.properties[name] = ArrayAttr(kept)
            else:
                func.properties.pop(name, None)
    for op in carriers(module):
        if all(nest == EMPTY for nest in elements(op.attributes.get(CARRIES))):
            op.attributes.pop(CARRIES, None)


def _without_empty(entry: Attribute) -> DictionaryAttr:
    assert isinstance(entry, DictionaryAttr)
    return DictionaryAttr({k: v for k, v in entry.data.items() if (k, v) != (NEST, EMPTY)})
