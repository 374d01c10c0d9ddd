"""Does the partitioned program compute the same? Three runs say it: SPMD, global, and global in
doubles.

Floats are equal when |SPMD − reference| ≤ 4·|global − reference| + 8·ε·max|reference|: the
partitioned program may be as far from the truth as rounding takes the global one, and a few times
that. Where the error of the global run is small by chance, the error of the whole array stands in
for it. Integers are equal exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import numbers
from .registry import Array

_FEW = 64  # a result of fewer elements says little about rounding
_FLIPS = (
    1e-3  # this part of the elements may be flips (a maximum that moved) in the global run itself
)


@dataclass(frozen=True)
class Mismatch:
    """The element that differs most, in units of what was allowed.

    `index` is its place, `spmd`, `global_` and `reference` its three values, `bound` the largest
    |spmd − reference| that would have been equal, `count` how many elements differ.
    """

    index: tuple[int, ...]
    spmd: Any
    global_: Any
    reference: Any
    bound: float
    count: int

    def __str__(self) -> str:
        place = f"[{', '.join(map(str, self.index))}]"
        more = f" and {self.count - 1} more" if self.count > 1 else ""
        return (
            f"at {place}{more}: {self.spmd} is not {self.global_} "
            f"(reference {self.reference}, allowed difference {self.bound:.3g})"
        )


def epsilon(dtype: np.dtype[Any]) -> float:
    """The distance from 1 to the next number of a real or complex floating-point dtype."""
    if dtype.kind == "c":
        dtype = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
    return float(numbers.float_info(dtype).eps)


def bounds(
    references: Sequence[Array], globals_: Sequence[Array], rtol: float | None = None
) -> list[Array | None]:
    """`allowed` for all results of a program together; None for integers and booleans.

    A result of few elements (a loss) may be exact by chance: its error, relative to its largest
    element, is taken to be at least that of the program's worst large result.
    """
    inexact = [_is_inexact(array.dtype) for array in globals_]
    pairs = [(r, g) for r, g, float_ in zip(references, globals_, inexact, strict=True) if float_]
    floor = max((_relative_noise(r, g) for r, g in pairs if g.size >= _FEW), default=0.0)
    return [
        allowed(r, g, rtol=rtol, floor=floor if g.size < _FEW else 0.0) if float_ else None
        for r, g, float_ in zip(references, globals_, inexact, strict=True)
    ]


def _is_inexact(dtype: np.dtype[Any]) -> bool:
    return numbers.is_float(dtype) or dtype.kind == "c"


def _relative_noise(reference: Array, global_: Array) -> float:
    """The typical error of a result, relative to its largest element."""
    known, noise = _known(reference, global_)
    scale = float(np.abs(known).max(initial=0.0))
    return typical_noise(noise, scale, epsilon(global_.dtype)) / scale if scale else 0.0


def allowed(
    reference: Array,
    global_: Array,
    dtype: np.dtype[Any] | None = None,
    rtol: float | None = None,
    *,
    floor: float = 0.0,
) -> Array:
    """How far from `reference` each element of a partitioned run may be, in absolute terms.

    Takes whole results (the error of the whole array counts), of which tiles are then compared.
    With `rtol` it is rtol·max|reference| everywhere. `floor` is an error, relative to the largest
    element, that the global run has at least.
    """
    eps = epsilon(np.dtype(dtype) if dtype is not None else global_.dtype)
    known, noise = _known(reference, global_)
    scale = float(np.abs(known).max(initial=0.0))
    if rtol is not None:
        return np.full(known.shape, rtol * scale)
    least = max(typical_noise(noise, scale, eps), floor * scale)
    return 4 * np.maximum(noise, least) + 8 * eps * scale


def _known(reference: Array, global_: Array) -> tuple[Array, Array]:
    """The reference where it is a number (else the global value, else 0), and the global error."""
    exact, one = _double(reference), _double(global_)
    finite = np.isfinite(one)
    known = np.where(finite & np.isfinite(exact), exact, np.where(finite, one, 0))
    return known, np.abs(np.where(finite, one - known, 0))


def compare(
    reference: Array,
    global_: Array,
    spmd: Array,
    dtype: np.dtype[Any] | None = None,
    rtol: float | None = None,
    *,
    bound: Array | None = None,
) -> Mismatch | None:
    """None when `spmd` equals `global_` in the sense of this module, else where they differ most.

    All three arrays have one shape; `dtype` is the declared dtype (that of `global_` by default).
    `bound` is what `allowed` gives, for the tile that is compared; without it, it is computed from
    these arrays. Infinities and NaNs of the global run must be the same in the SPMD run.
    """
    dtype = np.dtype(dtype) if dtype is not None else global_.dtype
    if spmd.shape != global_.shape:
        return Mismatch((), spmd.shape, global_.shape, reference.shape, 0.0, max(1, global_.size))
    if not _is_inexact(dtype):
        differs = np.asarray(spmd != global_)
        return _worst(differs.astype(np.float64), differs, reference, global_, spmd, np.zeros(()))
    if bound is None:
        bound = allowed(reference, global_, dtype, rtol)
    known, _ = _known(reference, global_)
    one, two = _double(global_), _double(spmd)
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    error = np.abs(np.where(np.isfinite(one), two - known, np.inf))
    error = np.where(np.isnan(error), np.inf, error)
    differs = (error > bound) & ~same
    return _worst(error / np.maximum(bound, 1e-300), differs, reference, global_, spmd, bound)


def typical_noise(noise: Array, scale: float, eps: float) -> float:
    """How far rounding takes an element of the global run: the largest error, but when that is no
    rounding (a maximum or a sign that flipped) the largest without the few flipped elements."""
    largest = float(noise.max(initial=0.0))
    if largest <= np.sqrt(eps) * scale:
        return largest
    return float(np.quantile(noise, 1 - _FLIPS, method="lower"))


def _double(a: Array) -> Array:
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


def _worst(
    badness: Array, differs: Array, reference: Array, global_: Array, spmd: Array, bound: Array
) -> Mismatch | None:
    if not differs.any():
        return None
    flat = int(np.argmax(np.where(differs, np.nan_to_num(badness, nan=np.inf), -1)))
    index = tuple(int(i) for i in np.unravel_index(flat, differs.shape))
    limit = float(np.broadcast_to(bound, differs.shape)[index])
    return Mismatch(index, spmd[index], global_[index], reference[index], limit, int(differs.sum()))


def not_finite(array: Array) -> tuple[int, ...] | None:
    """The index of the first NaN or infinity, or None."""
    if array.dtype.kind in "biu" or numbers.is_integer(array.dtype):
        return None
    wrong = ~np.isfinite(array if array.dtype.kind == "c" else array.astype(np.float64))
    if not wrong.any():
        return None
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
