"""What the ops of linear algebra and the Fourier transform compute, by NumPy's LAPACK and FFT.

Narrow types compute in f32. What a factorisation leaves unspecified (the other triangle) is zero, a
matrix that has no factorisation gives NaN, as XLA does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from .attributes import integer, integers, result_shape, text
from .compiler import Context
from .registry import Array, Kernel, binary, implements, unary

# ----------------------------------------------------------------------------- Fourier


def fft(a: Array, kind: str, lengths: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """The transform `kind` over the last len(lengths) dimensions."""
    axes = tuple(range(a.ndim - len(lengths), a.ndim))
    functions: dict[str, Callable[..., Array]] = {
        "FFT": np.fft.fftn,
        "IFFT": np.fft.ifftn,
        "RFFT": np.fft.rfftn,
        "IRFFT": np.fft.irfftn,
    }
    sizes = lengths if kind in ("RFFT", "IRFFT") else None
    if not a.size:
        return np.zeros((), dtype)
    return functions[kind](a, s=sizes, axes=axes).astype(dtype, copy=False)


@implements("stablehlo.fft")
def _fft(op: Operation, context: Context) -> Kernel:
    kind, lengths = text(op, "fft_type"), integers(op, "fft_length")
    dtype = context.dtype(op.results[0].type)
    shape = result_shape(op)
    return unary(lambda a: np.broadcast_to(fft(a, kind, lengths, dtype), shape))


# ----------------------------------------------------------------------------- triangles


def adjoint(a: Array) -> Array:
    """The conjugate transpose of the last two dimensions."""
    return np.conj(np.swapaxes(a, -1, -2))


def per_matrix(function: Callable[[Array], Array], a: Array) -> Array:
    """Applies a factorisation to each matrix; NaN where it fails."""
    rows = a.reshape(prod(a.shape[:-2]), *a.shape[-2:])
    results: list[Array] = []
    for row in rows:
        try:
            results.append(function(row))
        except np.linalg.LinAlgError:
            results.append(np.full_like(row, np.nan))
    return np.array(results, a.dtype).reshape(a.shape)


def cholesky(a: Array, lower: bool) -> Array:
    """L with a = L·Lᴴ, or U with a = Uᴴ·U; only that triangle of `a` is read."""
    triangle = np.tril(a) if lower else adjoint(np.triu(a))
    diagonal = np.einsum("...ii->...i", triangle).real
    full = triangle + adjoint(np.tril(triangle, -1))
    indices = np.arange(a.shape[-1], dtype=np.int64)
    full[..., indices, indices] = diagonal
    factor = per_matrix(np.linalg.cholesky, full)
    return factor if lower else adjoint(factor)


def triangular_solve(
    a: Array, b: Array, *, left: bool, lower: bool, transpose: str, unit: bool
) -> Array:
    """x with op(a)·x = b, or x·op(a) = b, by substitution; only one triangle of `a` is read."""
    a = np.tril(a) if lower else np.triu(a)
    if transpose == "TRANSPOSE":
        a, lower = np.swapaxes(a, -1, -2), not lower
    elif transpose == "ADJOINT":
        a, lower = adjoint(a), not lower
    if not left:  # x·a = b is aᵀ·xᵀ = bᵀ
        a, b, lower = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not lower
    x = _substitute(a, b, lower, unit)
    return x if left else np.swapaxes(x, -1, -2)


def _substitute(a: Array, b: Array, lower: bool, unit: bool) -> Array:
    size = a.shape[-1]
    x = np.array(b)
    order = range(size) if lower else range(size - 1, -1, -1)
    for row in order:
        known = slice(0, row) if lower else slice(row + 1, size)
        rest = x[..., row, :] - np.matmul(a[..., row : row + 1, known], x[..., known, :])[..., 0, :]
        x[..., row, :] = rest if unit else rest / a[..., row, row, None]
    return x


@implements("stablehlo.cholesky")
def _cholesky(op: Operation, context: Context) -> Kernel:
    lower = bool(integer(op, "lower", 0))
    return unary(lambda a: cholesky(a, lower))


@implements("stablehlo.triangular_solve")
def _triangular_solve(op: Operation, context: Context) -> Kernel:
    left, lower = bool(integer(op, "left_side")), bool(integer(op, "lower"))
    unit, transpose = bool(integer(op, "unit_diagonal")), text(op, "transpose_a")
    return binary(
        lambda a, b: triangular_solve(a, b, left=left, lower=lower, transpose=transpose, unit=unit)
    )
