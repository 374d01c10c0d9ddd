"""What `rng_bit_generator` computes: the counter-based generators with XLA's numbering of counters.

Threefry-2x32 (20 rounds) and Philox-4x32 (10 rounds) are those of Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3" (SC 2011). Which counter belongs to which element follows XLA: a test
compares every bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from . import numbers
from .attributes import result_shape, text
from .compiler import Context
from .faults import InterpreterError
from .registry import Array, Kernel, implements

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_PHILOX_WEYL = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))
_PHILOX_FACTORS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))


def _halves(a: Array) -> tuple[Array, Array]:
    """The low and the high word of 64-bit integers."""
    return a.astype(np.uint32), (a >> np.uint64(32)).astype(np.uint32)


def _whole(low: Array, high: Array) -> Array:
    return low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))


def threefry(key: Array, counters: Array) -> tuple[Array, Array]:
    """Two words for each 64-bit counter under a 64-bit key."""
    words = np.broadcast_to(np.asarray(key), (1,))
    k0, k1 = _halves(words)
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    a, b = _halves(counters)
    a, b = a + keys[0], b + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            a = a + b
            b = (b << np.uint32(rotation)) | (b >> np.uint32(32 - rotation))
            b = b ^ a
        a = a + keys[(group + 1) % 3]
        b = b + keys[(group + 2) % 3] + np.uint32(group + 1)
    return a, b


def philox(key: Array, low: Array, high: Array) -> list[Array]:
    """Four words for each 128-bit counter under a 64-bit key."""
    k0, k1 = _halves(np.broadcast_to(np.asarray(key), (1,)))
    state = [*_halves(low), *_halves(high)]
    for _ in range(10):
        first = state[0].astype(np.uint64) * _PHILOX_FACTORS[0]
        second = state[2].astype(np.uint64) * _PHILOX_FACTORS[1]
        (low0, high0), (low1, high1) = _halves(first), _halves(second)
        state = [high1 ^ state[1] ^ k0, low1, high0 ^ state[3] ^ k1, low0]
        k0, k1 = k0 + _PHILOX_WEYL[0], k1 + _PHILOX_WEYL[1]
    return state


def _split_dimension(shape: Sequence[int]) -> int:
    """The dimension of which XLA makes two halves: the first even one, else the first longest."""
    even = [d for d, size in enumerate(shape) if size % 2 == 0]
    return even[0] if even else max(range(len(shape)), key=lambda d: shape[d])


def threefry_bits(state: Array, shape: Sequence[int], width: int) -> tuple[Array, Array]:
    """The new state (u64[2]: key, counter) and words of `width` bits in `shape`."""
    key, counter = state[0], state[1]
    if width == 64:
        count = prod(shape)
        a, b = threefry(key, counter + np.arange(count, dtype=np.uint64))
        return _advance(state, count), _whole(a, b).reshape(shape)
    if not shape:
        a, _ = threefry(key, counter + np.zeros(1, np.uint64))
        return _advance(state, 1), a.reshape(())
    split = _split_dimension(shape)
    half = list(shape)
    half[split] = -(-shape[split] // 2)
    count = prod(half)
    a, b = threefry(key, counter + np.arange(count, dtype=np.uint64))
    paired = np.stack([a.reshape(half), b.reshape(half)], axis=split + 1)
    whole = [*half[:split], 2 * half[split], *half[split + 1 :]]
    trimmed = paired.reshape(whole)[tuple(slice(0, size) for size in shape)]
    return _advance(state, count), trimmed


def _advance(state: Array, count: int) -> Array:
    return np.array([state[0], state[1] + np.uint64(count)], np.uint64)


def philox_bits(state: Array, shape: Sequence[int], width: int) -> tuple[Array, Array]:
    """The new state (u64[3]: key, 128-bit counter) and words of `width` bits in `shape`."""
    words = prod(shape) * (2 if width == 64 else 1)
    count = -(-words // 4)
    low = state[1] + np.arange(count, dtype=np.uint64)
    high = state[2] + (low < state[1]).astype(np.uint64)
    parts = np.stack(philox(state[0], low, high), axis=1).reshape(-1)
    if width == 64:
        parts = _whole(parts[0::2], parts[1::2])
    after = state[1] + np.uint64(count)
    carried = state[2] + np.uint64(after < state[1])
    return np.array([state[0], after, carried], np.uint64), parts[: prod(shape)].reshape(shape)


@implements("stablehlo.rng_bit_generator")
def _rng_bit_generator(op: Operation, context: Context) -> Kernel:
    algorithm = text(op, "rng_algorithm")
    shape, dtype = result_shape(op, 1), context.declared(op.results[1].type)
    stored = context.dtype(op.results[1].type)
    if algorithm not in ("THREE_FRY", "PHILOX", "DEFAULT"):
        raise InterpreterError(f"unknown random algorithm: {algorithm!r}")

    def kernel(state: Array) -> list[Array]:
        words = np.ascontiguousarray(state).view(np.uint64)
        after, bits = _generate(algorithm, words, shape, numbers.bits(dtype))
        return [
            after.view(state.dtype).reshape(state.shape),
            _as(bits, dtype).astype(stored, copy=False),
        ]

    return kernel


@implements("stablehlo.rng")
def _rng(op: Operation, context: Context) -> Kernel:
    raise InterpreterError(
        "which numbers stablehlo.rng gives is not defined, so none can be verified"
    )


def _generate(
    algorithm: str, state: Array, shape: Sequence[int], width: int
) -> tuple[Array, Array]:
    if algorithm == "THREE_FRY":
        return threefry_bits(state[:2], shape, width)
    # XLA: without a third word the key is the high half of the counter, and a carry is lost.
    padded = state if len(state) >= 3 else np.array([state[0], state[1], state[0]], np.uint64)
    after, bits = philox_bits(padded, shape, width)
    return after[: len(state)], bits


def _as(bits: Array, dtype: np.dtype[Any]) -> Array:
    """The low bits of the words, as `dtype`."""
    if dtype.itemsize >= 4:
        return bits.view(dtype)
    return bits.astype(np.dtype(f"u{dtype.itemsize}")).view(dtype)
