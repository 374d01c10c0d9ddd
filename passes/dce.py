"""Which ops does nobody need? They go, last first, so that one sweep is enough."""

from __future__ import annotations

from xdsl.ir import Operation, Region

from .effects import is_droppable


def drop_dead_ops(op: Operation) -> int:
    """Erases, inside `op`, what makes unused results and does nothing else; how many ops went."""
    return sum(_sweep(region) for region in op.regions)


def _sweep(region: Region) -> int:
    count = 0
    for block in region.blocks:
        for op in list(block.ops)[::-1]:
            used = any(result.first_use is not None for result in op.results)
            if op.results and not used and is_droppable(op):
                op.detach()
                op.erase()
                count += 1
            elif op.regions:
                count += drop_dead_ops(op)
    return count
