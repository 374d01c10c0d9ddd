"""Which outcomes are known traps? Warnings for what propagation made of what was asked."""

from __future__ import annotations

from collections.abc import Sequence

from . import syntax as s
from .steps import Asked, Inferred, Warned
from .world import World

ZERO = ("zero1", "zero2", "zero3")


def traps(
    world: World, statement: s.Statement, asked: Sequence[Asked], inferred: Sequence[Inferred]
) -> list[Warned]:
    """ZeRO before data parallelism on the same axis: the shards spread over the whole program."""
    if not isinstance(statement, s.Call) or statement.name not in ZERO:
        return []
    found: list[Warned] = []
    tiles = [a for a in asked if a.action == "tile"]
    for axis in dict.fromkeys(a.axis for a in tiles if a.status == "done"):
        captured = [i for i in inferred if i.axis == axis]
        inputs = world.roles.of("input")
        values = [world.graph.arguments[i].value for i in inputs]
        before = {i.argument for i in captured}
        batched = any(
            world.session.tiled_dim(value, axis) is not None and index not in before
            for index, value in zip(inputs, values, strict=True)
        )
        if captured and not batched:
            count = len([a for a in tiles if a.axis == axis])
            found.append(
                Warned(
                    f"{statement.name} captured {len(captured)} arguments beside the {count} it "
                    f"asked for ({captured[0].name}, …), because nothing uses {axis} for the "
                    f"batch yet: write batch(axis={axis}) before it",
                    statement.span,
                )
            )
    return found
