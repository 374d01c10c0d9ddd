"""What `sort` and `top_k` compute.

Any comparator is sorted by Batcher's network, whose every step compares many pairs at once; ties
are broken by the original position, so the order is stable. A comparator that is one comparison of
integers needs no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from . import numbers
from .attributes import integer, shape_of, text
from .bodies import Body
from .compiler import Context
from .registry import Array, Kernel, implements, implements_call, unary


def network(count: int) -> Iterator[tuple[Array, Array]]:
    """Batcher's odd-even merge sort: steps of disjoint pairs (low, high) to compare and swap."""
    p = 1
    while p < count:
        k = p
        while k >= 1:
            start = np.arange(k % p, count - k, 2 * k)[:, None] + np.arange(k)
            low = start.reshape(-1)
            low = low[low < count - k]
            same = low // (2 * p) == (low + k) // (2 * p)
            low = low[same]
            if low.size:
                yield low, low + k
            k //= 2
        p *= 2


def sort(arrays: Sequence[Array], dimension: int, before: Body) -> list[Array]:
    """Sorts the arrays together along `dimension`; `before(a, b)` says that a comes first."""
    lines = [np.moveaxis(a, dimension, -1) for a in arrays]
    order = _key_order(lines, before)
    if order is None:
        order = _network_order(lines, before)
    return [np.moveaxis(np.take_along_axis(line, order, axis=-1), -1, dimension) for line in lines]


def _key_order(lines: Sequence[Array], before: Body) -> Array | None:
    """The order for a comparator that is one `<` or `>` of integers, or None."""
    ops = list(before.block.ops)
    if len(ops) != 2 or ops[0].name != "stablehlo.compare":
        return None
    place: dict[SSAValue, int] = {v: i for i, v in enumerate(before.block.args)}
    left, right = (place.get(value, -1) for value in ops[0].operands)
    direction = text(ops[0], "comparison_direction")
    key = min(left, right) // 2
    if {left, right} != {2 * key, 2 * key + 1} or key < 0 or direction not in ("LT", "GT"):
        return None
    values = lines[key]
    if not (numbers.is_integer(values.dtype) or values.dtype == numbers.BOOL):
        return None
    ascending = (direction == "LT") == (left < right)
    wide = values.astype(numbers.wide(values.dtype), copy=False)
    return np.argsort(wide if ascending else np.invert(wide), axis=-1, kind="stable")


def _network_order(lines: Sequence[Array], before: Body) -> Array:
    shape = lines[0].shape
    work = [np.array(line) for line in lines]
    order: Array = np.broadcast_to(np.arange(shape[-1], dtype=np.int64), shape).copy()
    for low, high in network(shape[-1]):
        sides = [side for w in work for side in (w[..., low], w[..., high])]
        swapped = [side for w in work for side in (w[..., high], w[..., low])]
        (first,), (second,) = before(*sides), before(*swapped)
        exchange = second | (~first & (order[..., low] > order[..., high]))
        for w in (*work, order):
            a, b = w[..., low], w[..., high]
            w[..., low], w[..., high] = np.where(exchange, b, a), np.where(exchange, a, b)
    return order


def top_k(a: Array, k: int, largest: bool = True) -> list[Array]:
    """The k largest elements along the last dimension and their positions, equal ones in order;
    floats by their total order (NaN is the largest, -NaN the smallest)."""
    wide = a.astype(numbers.wide(a.dtype), copy=False)
    key = numbers.total_order_key(wide) if numbers.is_float(wide.dtype) else wide
    order = np.argsort(np.invert(key) if largest else key, axis=-1, kind="stable")[..., :k]
    return [np.take_along_axis(a, order, axis=-1), order.astype(np.int32)]


@implements("stablehlo.sort")
def _sort(op: Operation, context: Context) -> Kernel:
    rank = len(shape_of(op.results[0].type))
    dimension = integer(op, "dimension", -1) % rank
    before = context.body(op.regions[0])

    def kernel(*arrays: Array) -> list[Array]:
        return sort(arrays, dimension, before)

    return kernel


@implements("chlo.top_k")
def _top_k(op: Operation, context: Context) -> Kernel:
    k = integer(op, "k")
    return unary(lambda a: top_k(a, k))


@implements_call("mhlo.topk", "TopK")
def _top_k_call(op: Operation, context: Context) -> Kernel:
    k = shape_of(op.results[0].type)[-1]
    attributes: Any = op.attributes.get("mhlo.attributes")
    flag = None if attributes is None else attributes.data.get("largest")
    largest = flag is None or bool(flag.value.data)

    def kernel(a: Array, *rest: Array) -> list[Array]:
        return top_k(a, k, largest)

    return kernel
