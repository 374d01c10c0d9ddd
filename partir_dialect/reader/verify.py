"""Is a module that was read also valid, and if not, where in its text is the fault?

The ops' own verifiers decide. Where an op stands is found by reading the text once more, so
that a good text pays nothing for it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region
from xdsl.traits import IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

from ..errors import ReadError, Span
from ..names import op_name
from ..sdy_checks import check_function_shardings
from .module import ModuleReader, reading_context


def verify_module(module: ModuleOp, text: str, filename: str = "<string>") -> None:
    """Checks every op of a module that was read from `text`.

    Raises `ReadError` at the first op that does not verify.
    """
    for index, op in enumerate(module.walk()):
        fault = _fault(op)
        if fault is not None:
            offset = _offset(text, filename, index)
            span = None if offset is None else Span.at(filename, text, offset)
            raise ReadError(f"{op_name(op)}: {fault}", span=span)


def _fault(op: Operation) -> str | None:
    """Why an op is not valid, apart from the ops inside it."""
    try:
        op.verify_()
        if isinstance(op, FuncOp):
            check_function_shardings(op)
    except VerifyException as error:
        return str(error).strip().split("\n", maxsplit=1)[0]
    for region in op.regions:
        for block in region.blocks:
            if (fault := _block_fault(op, region, block)) is not None:
                return fault
        several = region.blocks.first is not region.blocks.last
        if several and (fault := _dominance_fault(region)) is not None:
            return fault
    return None


def _block_fault(op: Operation, region: Region, block: Block) -> str | None:
    """Whether a block ends as it must and branches only within its region."""
    last = block.last_op
    free = op.has_trait(NoTerminator)
    if last is None:
        return None if free else "a block has no op at its end, and needs a terminator"
    if not free and not last.has_trait(IsTerminator):
        return f"a block must end with a terminator, got: {op_name(last)}"
    for inner in block.ops:
        if inner.successors and inner is not last:
            return f"an op that branches must be the last of its block, got: {op_name(inner)}"
        if any(successor.parent is not region for successor in inner.successors):
            return f"an op branches to a block of another region, got: {op_name(inner)}"
    return None


def _dominators(region: Region) -> dict[Block, set[Block]]:
    """For each block the blocks through which every way from the entry to it goes."""
    blocks = list(region.blocks)
    before: dict[Block, list[Block]] = {block: [] for block in blocks}
    for block in blocks:
        for successor in block.last_op.successors if block.last_op else ():
            before[successor].append(block)
    through = {block: set(blocks) for block in blocks}
    through[blocks[0]] = {blocks[0]}
    changed = True
    while changed:
        changed = False
        for block in blocks[1:]:
            ways = [through[source] for source in before[block]]
            now = {block, *(set[Block].intersection(*ways) if ways else set(blocks))}
            changed |= now != through[block]
            through[block] = now
    return through


def _dominance_fault(region: Region) -> str | None:
    """Whether some op uses a value of a block that need not have run before it."""
    through = _dominators(region)
    for block in region.blocks:
        for op in block.walk():
            for operand in op.operands:
                owner = operand.owner
                source = owner if isinstance(owner, Block) else owner.parent
                if source in through and source not in through[block]:
                    return f"an operand need not have been computed before: {op_name(op)}"
    return None


def _offset(text: str, filename: str, index: int) -> int | None:
    """Where the op with this number, in the order of `walk`, begins in the text."""
    reader = ModuleReader(text, filename, reading_context())
    reader.offsets = {}
    try:
        ops = list(reader.read().walk())
    except (ReadError, RecursionError):
        return None
    op: Operation | None = ops[index]
    while op is not None and id(op) not in reader.offsets:
        op = op.parent_op()  # implied by a pretty form: blame the op that implies it
    return None if op is None else reader.offsets[id(op)]
