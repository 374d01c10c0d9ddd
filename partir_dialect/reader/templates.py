"""How is an op made when the same line, with other names, has been read before?

Making an op is the inner loop of the reader, so it fills xDSL's fields directly instead of
going through `Operation.create`; a test compares both.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue, Use
from xdsl.ir.core import SSAValues

# pyright: reportPrivateUsage=false


class Template:
    """What a line says apart from names and location.

    `operands` has for each operand the index of its name in the line and its type; `counts`
    how many results each result name stands for.
    """

    __slots__ = (
        "attributes",
        "counts",
        "op_class",
        "operands",
        "properties",
        "regions",
        "results",
        "single",
    )

    def __init__(
        self,
        op_class: type[Operation],
        operands: Sequence[tuple[int, Attribute]],
        example: Operation,
        counts: tuple[int, ...],
    ) -> None:
        self.op_class = op_class
        self.operands = tuple(operands)
        self.results = tuple(result.type for result in example.results)
        self.properties = dict(example.properties)
        self.attributes = dict(example.attributes)
        self.regions = tuple(region.clone() for region in example.regions)
        self.counts = counts
        self.single = counts == (1,)


def make(
    template: Template, operands: Sequence[SSAValue], location: LocationAttr | None
) -> Operation:
    """An op like the template's, with these operands."""
    op = object.__new__(template.op_class)
    uses: list[Use] = []
    for index, operand in enumerate(operands):
        first = operand.first_use
        use = Use(op, index, None, first)
        if first is not None:
            first._prev_use = use
        operand.first_use = use
        uses.append(use)
    op._operands = SSAValues(operands)
    op._operand_uses = tuple(uses)
    op.results = SSAValues(
        [OpResult(type_, op, index) for index, type_ in enumerate(template.results)]
    )
    op.properties = template.properties.copy()
    op.attributes = template.attributes.copy()
    op.location = UNKNOWN_LOC if location is None else location
    if template.regions:
        op.regions = ()
        for region in template.regions:
            op.add_region(placed(region.clone(), op.location))
    return op


def placed(region: Region, location: LocationAttr) -> Region:
    """A region that an op implies, whose parts are where the op is."""
    for block in region.blocks:
        for argument in block.args:
            argument.location = location
        for op in block.ops:
            op.location = location
    return region


def link(block: Block, ops: Sequence[Operation]) -> None:
    """Puts ops that belong to no block into an empty block."""
    if not ops:
        return
    previous: Operation | None = None
    for op in ops:
        op.parent = block
        op._prev_op = previous
        if previous is not None:
            previous._next_op = op
        previous = op
    block._first_op = ops[0]
    block._last_op = ops[-1]
