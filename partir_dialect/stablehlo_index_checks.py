"""When do the dimension numbers of a gather or scatter fit its operands?"""

from __future__ import annotations

from collections.abc import Sequence

from .stablehlo_attrs import GatherAttr, ScatterAttr
from .stablehlo_base import HloOp, same_size
from .stablehlo_checks import check_dim, check_dims, check_length

Shape = Sequence[int]


def gather_shape(
    op: HloOp, operand: Shape, indices: Shape, sizes: Shape | None, numbers: GatherAttr
) -> tuple[int, ...]:
    """The shape of a gather's result; fails unless the dimension numbers fit.

    `sizes` are the slice sizes, None if they are not known.
    """
    slices = [-1] * len(operand) if sizes is None else list(sizes)
    vector, offsets = numbers.index_vector_dim, numbers.offset_dims
    check_dim(op, "index_vector_dim", vector, len(indices) + 1)
    batch = [size for dim, size in enumerate(indices) if dim != vector]
    rank = len(offsets) + len(batch)
    check_dims(op, "offset_dims", offsets, rank, ascending=True)
    _check_operand_dims(
        op,
        operand,
        indices,
        batching=("operand_batching_dims", numbers.operand_batching_dims),
        dropped=("collapsed_slice_dims", numbers.collapsed_slice_dims),
        index_batching=("start_indices_batching_dims", numbers.start_indices_batching_dims),
        index_map=("start_index_map", numbers.start_index_map),
        vector=vector,
    )
    taken = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    if len(offsets) + len(taken) != len(operand):
        op.fail(
            f"offset, collapsed and batching dimensions must be the {len(operand)} of the operand, "
            f"got: {numbers}"
        )
    check_length(op, "slice_sizes", slices, len(operand))
    for dim, (size, bound) in enumerate(zip(slices, operand, strict=True)):
        if sizes is not None and (size < 0 or 0 <= bound < size):
            op.fail(f"slice_sizes[{dim}] must be in [0, {bound}], got: {size}")
        if dim in taken and size > 1:
            op.fail(f"slice_sizes[{dim}] must be at most 1, got: {size}")
    window = [size for dim, size in enumerate(slices) if dim not in taken]
    places, rest = iter(window), iter(batch)
    return tuple(next(places) if dim in offsets else next(rest) for dim in range(rank))


def check_scatter(
    op: HloOp, operand: Shape, indices: Shape, updates: Shape, numbers: ScatterAttr
) -> None:
    """Fails unless the dimension numbers of a scatter fit these shapes."""
    vector, window = numbers.index_vector_dim, numbers.update_window_dims
    check_dim(op, "index_vector_dim", vector, len(indices) + 1)
    batch = [size for dim, size in enumerate(indices) if dim != vector]
    if len(updates) != len(batch) + len(window):
        op.fail(f"updates must have rank {len(batch) + len(window)}, got: {len(updates)}")
    check_dims(op, "update_window_dims", window, len(updates), ascending=True)
    _check_operand_dims(
        op,
        operand,
        indices,
        batching=("input_batching_dims", numbers.input_batching_dims),
        dropped=("inserted_window_dims", numbers.inserted_window_dims),
        index_batching=("scatter_indices_batching_dims", numbers.scatter_indices_batching_dims),
        index_map=("scatter_dims_to_operand_dims", numbers.scatter_dims_to_operand_dims),
        vector=vector,
    )
    taken = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    if len(window) + len(taken) != len(operand):
        op.fail(
            f"window, inserted and batching dimensions must be the {len(operand)} of the inputs, "
            f"got: {numbers}"
        )
    bounds = [size for dim, size in enumerate(operand) if dim not in taken]
    for dim, bound in zip(window, bounds, strict=True):
        if 0 <= bound < updates[dim]:
            op.fail(f"updates dimension {dim} must be at most {bound}, got: {updates[dim]}")
    rest = [dim for dim in range(len(updates)) if dim not in window]
    for dim, size in zip(rest, batch, strict=True):
        if not same_size(updates[dim], size):
            op.fail(f"updates dimension {dim} must have size {size}, got: {updates[dim]}")


def _check_operand_dims(
    op: HloOp,
    operand: Shape,
    indices: Shape,
    *,
    batching: tuple[str, Shape],
    dropped: tuple[str, Shape],
    index_batching: tuple[str, Shape],
    index_map: tuple[str, Shape],
    vector: int,
) -> None:
    """What a gather and a scatter ask of the operand's and the indices' dimensions alike."""
    rank = len(operand)
    check_dims(op, *dropped, rank, ascending=True)
    check_dims(op, *batching, rank, ascending=True)
    check_dims(op, f"{dropped[0]} and {batching[0]}", [*dropped[1], *batching[1]], rank)
    check_dims(op, *index_batching, len(indices))
    if vector in index_batching[1]:
        op.fail(f"{index_batching[0]} must not have index_vector_dim, got: {vector}")
    check_length(op, index_batching[0], index_batching[1], len(batching[1]))
    for mine, other in zip(batching[1], index_batching[1], strict=True):
        if not same_size(operand[mine], indices[other]):
            op.fail(
                f"operand dimension {mine} and indices dimension {other} must have one size, "
                f"got: {operand[mine]}, {indices[other]}"
            )
    depth = indices[vector] if vector < len(indices) else 1
    if not same_size(depth, len(index_map[1])):
        op.fail(f"{index_map[0]} must have {depth} value(s), got: {len(index_map[1])}")
    check_dims(op, f"{index_map[0]} and {batching[0]}", [*index_map[1], *batching[1]], rank)
