"""What the LAPACK custom calls that JAX emits on CPU compute, and how unknown custom calls fail.

Users add their own through `registry.implements_call("target")`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation

from .attributes import find, result_shape, text
from .compiler import Context
from .faults import InterpreterError
from .registry import CUSTOM_CALLS, Array, Kernel, binary, implements, implements_call, unary
from .solvers import cholesky, triangular_solve


def _types(pattern: str) -> tuple[str, ...]:
    """`lapack_?geqrf_ffi` for the four LAPACK types."""
    return tuple(pattern.replace("?", letter) for letter in "sdcz")


def _option(op: Operation, name: str, default: str) -> str:
    """A character or flag in the call's backend configuration, upper case."""
    for holder in ("mhlo.backend_config", "backend_config"):
        config: Any = find(op, holder)
        data = getattr(config, "data", None)
        if isinstance(data, Mapping) and name in data:
            attribute = cast("Mapping[str, Any]", data)[name]
            value: object = attribute.value.data
            return chr(value).upper() if isinstance(value, int) and value > 1 else str(value)
    return default


@implements("stablehlo.custom_call")
def _custom_call(op: Operation, context: Context) -> Kernel:
    target = text(op, "call_target_name")
    if target not in CUSTOM_CALLS:
        raise InterpreterError(
            f"no interpretation for the custom call: {target!r}",
            name=target,
            candidates=CUSTOM_CALLS,
        )
    return CUSTOM_CALLS[target](op, context)


@implements_call(
    "Sharding",
    "annotate_device_placement",
    "MoveToHost",
    "MoveToDevice",
    "stablehlo.shape_refinement_operand_wrapper",
)
def _identity(op: Operation, context: Context) -> Kernel:
    def kernel(a: Array, *rest: Array) -> list[Array]:
        return [a]

    return kernel


@implements_call("shape_assertion")
def _shape_assertion(op: Operation, context: Context) -> Kernel:
    message = text(op, "error_message", "a shape assertion")

    def kernel(holds: Array, *sizes: Array) -> list[Array]:
        if not holds:
            raise InterpreterError(f"does not hold: {message}, got: {[int(n) for n in sizes]}")
        return []

    return kernel


# ----------------------------------------------------------------------------- QR


@implements_call(*_types("lapack_?geqrf_ffi"), "Qr")
def _geqrf(op: Operation, context: Context) -> Kernel:
    def kernel(a: Array) -> list[Array]:
        packed, tau = np.linalg.qr(a, mode="raw")
        return [np.ascontiguousarray(np.swapaxes(packed, -1, -2)), tau]

    return kernel


def householder_product(a: Array, tau: Array) -> Array:
    """The first columns of H₁·H₂·… with Hᵢ = I − τᵢ·vᵢ·vᵢᴴ, vᵢ below the diagonal of `a`."""
    rows, columns = a.shape[-2:]
    result = np.broadcast_to(np.eye(rows, columns, dtype=a.dtype), a.shape).copy()
    for i in range(tau.shape[-1] - 1, -1, -1):
        v = a[..., :, i].copy()
        v[..., :i] = 0
        v[..., i] = 1
        projection = np.matmul(np.conj(v)[..., None, :], result)
        result = result - tau[..., i, None, None] * v[..., :, None] * projection
    return result


@implements_call(
    *(
        name
        for kind in ("sorgqr", "dorgqr", "cungqr", "zungqr")
        for name in (f"lapack_{kind}_ffi",)
    ),
    "ProductOfElementaryHouseholderReflectors",
)
def _orgqr(op: Operation, context: Context) -> Kernel:
    return binary(lambda a, tau: [householder_product(a, tau)])


# ----------------------------------------------------------------------------- LU


def lu(a: Array) -> tuple[Array, Array]:
    """Partial pivoting: L and U packed into one matrix, and the row exchanged with each row."""
    rows, columns = a.shape
    packed, pivots = np.array(a), np.zeros(min(rows, columns), np.int32)
    for i in range(min(rows, columns)):
        pivot = i + int(np.argmax(np.abs(packed[i:, i])))
        pivots[i] = pivot
        packed[[i, pivot]] = packed[[pivot, i]]
        if packed[i, i] != 0:
            packed[i + 1 :, i] /= packed[i, i]
        packed[i + 1 :, i + 1 :] -= np.outer(packed[i + 1 :, i], packed[i, i + 1 :])
    return packed, pivots


@implements_call(*_types("lapack_?getrf_ffi"))
def _getrf(op: Operation, context: Context) -> Kernel:
    def kernel(a: Array) -> list[Array]:
        lead = a.shape[:-2]
        pairs = [lu(m) for m in a.reshape(prod(lead), *a.shape[-2:])]
        packed = np.array([p for p, _ in pairs], a.dtype).reshape(a.shape)
        pivots = np.array([p for _, p in pairs], np.int32).reshape(*lead, min(a.shape[-2:]))
        return [packed, pivots + np.int32(1), np.zeros(lead, np.int32)]  # LAPACK counts from 1

    return kernel


def pivots_to_permutation(pivots: Array, size: int) -> Array:
    """The order of the rows after the exchanges, pivots counted from 0."""
    order = np.broadcast_to(np.arange(size, dtype=np.int32), (*pivots.shape[:-1], size)).copy()
    for i in range(pivots.shape[-1]):
        other = pivots[..., i : i + 1].astype(np.int64)
        here = order[..., i : i + 1].copy()
        order[..., i : i + 1] = np.take_along_axis(order, other, axis=-1)
        np.put_along_axis(order, other, here, axis=-1)
    return order


@implements_call("LuPivotsToPermutation", "cu_lu_pivots_to_permutation")
def _pivots_to_permutation(op: Operation, context: Context) -> Kernel:
    size = result_shape(op)[-1]
    return unary(lambda pivots: [pivots_to_permutation(pivots, size)])


# ----------------------------------------------------------------------------- eigen, SVD, Cholesky


@implements_call(
    *(name for kind in ("ssyevd", "dsyevd", "cheevd", "zheevd") for name in (f"lapack_{kind}_ffi",))
)
def _eigh(op: Operation, context: Context) -> Kernel:
    lower = _option(op, "uplo", "L") == "L"

    def kernel(a: Array) -> list[Array]:
        values, vectors = np.linalg.eigh(a, UPLO="L" if lower else "U")
        return [vectors, values, np.zeros(a.shape[:-2], np.int32)]

    return kernel


@implements_call(*_types("lapack_?gesdd_ffi"))
def _svd(op: Operation, context: Context) -> Kernel:
    full = _option(op, "mode", "S") == "A"

    def kernel(a: Array) -> list[Array]:
        u, values, v = np.linalg.svd(a, full_matrices=full)
        return [a, values, u, v, np.zeros(a.shape[:-2], np.int32)]

    return kernel


@implements_call(*_types("lapack_?potrf_ffi"))
def _potrf(op: Operation, context: Context) -> Kernel:
    lower = _option(op, "uplo", "L") == "L"
    return unary(lambda a: [cholesky(a, lower), np.zeros(a.shape[:-2], np.int32)])


@implements_call(*_types("blas_?trsm"), *_types("lapack_?trsm_ffi"))
def _trsm(op: Operation, context: Context) -> Kernel:
    left, lower = _option(op, "side", "L") == "L", _option(op, "uplo", "L") == "L"
    transpose = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[_option(op, "trans_x", "N")]
    unit = _option(op, "diag", "N") == "U"

    def kernel(a: Array, b: Array, *rest: Array) -> list[Array]:
        return [triangular_solve(a, b, left=left, lower=lower, transpose=transpose, unit=unit)]

    return kernel
