"""Where does the older spelling compute for each device? Between `@SPMDFullToShardShape` and
`@SPMDShardToFullShape`, which become one `sdy.manual_computation`.

Precondition: calls may still stand between the two (they are inlined first, by `prepare`, only if
this runs after it; here the callee stays a call inside the region and is inlined later).
Postcondition: no such custom call is left.

```mlir
%1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : …
%2 = func.call @local(%1) : …
%3 = stablehlo.custom_call @SPMDShardToFullShape(%2) {mhlo.sharding = "{replicated}"} : …
```
becomes `sdy.manual_computation(%0) … { func.call @local … }`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from ..partir_dialect.errors import PartirError
from ..partir_dialect.mesh import Mesh
from ..partir_dialect.names import location_text
from ..partir_dialect.sdy import ManualComputationOp, ReturnOp, Sharding
from .inline import clone_op
from .mhlo_sharding import sharding_of_text

_INTO = "SPMDFullToShardShape"
_OUT = "SPMDShardToFullShape"
_SHARDING = "Sharding"
_MHLO = "mhlo.sharding"


def manual_regions(module: ModuleOp, mesh: Mesh, symbol: str) -> None:
    """Rewrites the manual parts of the module in place; raises `PartirError`."""
    while True:
        ends = [op for op in module.walk() if _target(op) == _OUT]
        if not ends:
            break
        _Region(ends, mesh, symbol).build()
    for op in list(module.walk()):
        if _target(op) == _INTO:
            raise _fault(op, "what it makes is never put together again")


def _target(op: Operation) -> str:
    name = op.properties.get("call_target_name")
    return name.data if isinstance(name, StringAttr) else ""


def _text(op: Operation) -> str:
    text = op.attributes.get(_MHLO)
    return text.data if isinstance(text, StringAttr) else "{manual}"


def _fault(op: Operation, message: str) -> PartirError:
    place = location_text(op.location)
    target = _target(op)
    return PartirError(f"{place + ': ' if place else ''}@{target or op.name}: {message}")


class _Region:
    """One manual region: everything that the first end needs, and the other ends of it."""

    def __init__(self, ends: Sequence[Operation], mesh: Mesh, symbol: str) -> None:
        self.mesh = mesh
        self.symbol = symbol
        self.inside: dict[Operation, None] = {}
        self.begins: dict[Operation, None] = {}
        self.ends = [ends[0]]
        self._collect(ends[0].operands[0])
        for end in ends[1:]:
            if end.parent is ends[0].parent and self._shares(end.operands[0]):
                self.ends.append(end)
                self._collect(end.operands[0])

    def _collect(self, value: SSAValue) -> None:
        work = [value]
        while work:
            owner = work.pop().owner
            if not isinstance(owner, Operation):
                raise _fault(self.ends[0], "its region uses an argument of the function whole")
            if _target(owner) == _INTO:
                self.begins[owner] = None
            elif owner not in self.inside:
                self.inside[owner] = None
                work.extend(owner.operands)
                for region in owner.regions:
                    for inner in region.walk():
                        work.extend(v for v in inner.operands if _is_outside(v, owner))

    def _shares(self, value: SSAValue) -> bool:
        """Whether another end needs what this region makes."""
        seen: set[Operation] = set()
        work = [value]
        while work:
            owner = work.pop().owner
            if not isinstance(owner, Operation) or owner in seen:
                continue
            seen.add(owner)
            if owner in self.begins or owner in self.inside:
                return True
            if _target(owner) != _INTO:
                work.extend(owner.operands)
        return False

    def build(self) -> None:
        first = self.ends[0]
        block = first.parent
        assert block is not None
        begins = [op for op in block.ops if op in self.begins]
        body = Block(arg_types=[op.results[0].type for op in begins])
        values: dict[SSAValue, SSAValue] = {
            op.results[0]: argument for op, argument in zip(begins, body.args, strict=True)
        }
        for op in [op for op in block.ops if op in self.inside]:
            if _target(op) == _SHARDING:  # `{manual}`: an identity inside
                values[op.results[0]] = values[op.operands[0]]
            else:
                body.add_op(clone_op(op, values))
        body.add_op(ReturnOp([values[end.operands[0]] for end in self.ends]))
        made = ManualComputationOp(
            [op.operands[0] for op in begins],
            [self._sharding_before(op) for op in begins],
            [self._sharding(end, _text(end), end.results[0]) for end in self.ends],
            self.mesh.names,
            Region([body]),
            [end.results[0].type for end in self.ends],
        )
        made.location = first.location
        block.insert_op_before(made, first)
        for end, result in zip(self.ends, made.results, strict=True):
            end.results[0].replace_all_uses_with(result)
            end.detach()
            end.erase()
        for op in [
            op for op in reversed(list(block.ops)) if op in self.inside or op in self.begins
        ]:
            if not any(result.uses.get_length() for result in op.results):
                op.detach()
                op.erase()

    def _sharding_before(self, begin: Operation) -> Sharding:
        """How what goes in is cut: the `@Sharding` call before says it."""
        before = begin.operands[0].owner
        if not isinstance(before, Operation) or _target(before) != _SHARDING:
            raise _fault(begin, "it needs a call of @Sharding before it")
        return self._sharding(begin, _text(before), begin.operands[0])

    def _sharding(self, op: Operation, text: str, value: SSAValue) -> Sharding:
        type_ = value.type
        rank = len(type_.get_shape()) if isinstance(type_, TensorType) else 0
        found = sharding_of_text(text, rank, self.mesh, self.symbol)
        if found is None:
            raise _fault(op, f"how it is cut is not said, got: {text!r}")
        return found


def _is_outside(value: SSAValue, around: Operation) -> bool:
    owner = value.owner
    holder = owner if isinstance(owner, Operation) else owner.parent_op()
    while holder is not None:
        if holder is around:
            return False
        holder = holder.parent_op()
    return True
