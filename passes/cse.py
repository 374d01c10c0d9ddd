"""Which ops say the same twice? The first one of a block stands for all.

What is derived from one parameter alone, by ops that only change its shape or type, stays apart:
two transposes of one weight may want two placements, and each of them is gathered where it is used.
Constants and what they generate stay apart too (`generated` makes one for each use).
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from .effects import is_mergeable
from .generated import is_generated

_VIEWS = frozenset(
    f"stablehlo.{name}"
    for name in ("bitcast_convert", "broadcast_in_dim", "convert", "reshape", "slice", "transpose")
)
Key = tuple[Hashable, ...]


class _Merger:
    """One sweep over a function; numbers attributes so that keys are cheap to hash."""

    def __init__(self) -> None:
        self.count = 0
        self._numbers: dict[Attribute, int] = {}
        self._seen: dict[int, tuple[Attribute, int]] = {}  # by identity; holds what it numbers
        self._parameters: set[SSAValue] = set()

    def function(self, func: FuncOp) -> None:
        entry = func.body.blocks.first
        self._parameters = set(entry.args) if entry is not None else set()
        self._sweep(func.body)

    def _number(self, attribute: Attribute) -> int:
        known = self._seen.get(id(attribute))
        if known is None:
            number = self._numbers.setdefault(attribute, len(self._numbers))
            known = self._seen[id(attribute)] = (attribute, number)
        return known[1]

    def _sweep(self, region: Region) -> None:
        for block in region.blocks:
            first: dict[Key, Operation] = {}
            for op in list(block.ops):
                for inner in op.regions:
                    self._sweep(inner)
                self._merge(op, first)

    def _merge(self, op: Operation, first: dict[Key, Operation]) -> None:
        if op.name in _VIEWS and op.operands[0] in self._parameters:
            self._parameters.add(op.results[0])
            return
        if not op.results or is_generated(op) or not is_mergeable(op):
            return
        known = first.setdefault(self._key(op, {}), op)
        if known is op:
            return
        for old, new in zip(op.results, known.results, strict=True):
            old.replace_all_uses_with(new)
        op.detach()
        op.erase()
        self.count += 1

    def _attributes(self, attributes: dict[str, Attribute]) -> Key:
        if len(attributes) < 2:
            return tuple((name, self._number(value)) for name, value in attributes.items())
        return tuple(sorted((name, self._number(value)) for name, value in attributes.items()))

    def _key(self, op: Operation, inner: dict[SSAValue, int]) -> Key:
        """Equal for ops that compute the same; `inner` numbers values made inside the op."""
        return (
            op.name,
            tuple(self._operand(operand, inner) for operand in op.operands),
            self._attributes(op.properties),
            self._attributes(op.attributes),
            tuple(self._number(result.type) for result in op.results),
            tuple(self._region_key(region, inner) for region in op.regions),
        )

    def _operand(self, operand: SSAValue, inner: dict[SSAValue, int]) -> Hashable:
        """Values made from nothing are equal if they are made alike, though they are not merged."""
        if operand in inner:
            return inner[operand]
        owner = operand.owner
        return (
            self._key(owner, {})
            if isinstance(owner, Operation) and is_generated(owner)
            else operand
        )

    def _region_key(self, region: Region, inner: dict[SSAValue, int]) -> Key:
        return tuple(self._block_key(block, inner) for block in region.blocks)

    def _block_key(self, block: Block, inner: dict[SSAValue, int]) -> Key:
        types: list[Hashable] = []
        for argument in block.args:
            inner[argument] = len(inner)
            types.append(self._number(argument.type))
        keys: list[Hashable] = []
        for op in block.ops:
            keys.append(self._key(op, inner))
            for result in op.results:
                inner[result] = len(inner)
        return (tuple(types), *keys)


def merge_equal_ops(func: FuncOp) -> int:
    """Merges, block by block, the equal ops of `func`; how many went."""
    merger = _Merger()
    merger.function(func)
    return merger.count
