"""The special functions of CHLO in NumPy alone, accurate to double precision.

Sources: W. J. Cody, "Rational Chebyshev approximation for the error function" (1969); Lanczos'
approximation of the gamma function (g = 7, n = 9); M. Giles, "Approximating the erfinv function"
(2012) with two Newton steps; asymptotic series with recurrence for the polygamma functions
(Abramowitz and Stegun 6.4).
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

import numpy as np

from .registry import Array

_ERF_P = (
    3.16112374387056560e00,
    1.13864154151050156e02,
    3.77485237685302021e02,
    3.20937758913846947e03,
    1.85777706184603153e-1,
)
_ERF_Q = (
    2.36012909523441209e01,
    2.44024637934444173e02,
    1.28261652607737228e03,
    2.84423683343917062e03,
)
_ERFC_P = (
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e01,
    2.98635138197400131e02,
    8.81952221241769090e02,
    1.71204761263407058e03,
    2.05107837782607147e03,
    1.23033935479799725e03,
    2.15311535474403846e-8,
)
_ERFC_Q = (
    1.57449261107098347e01,
    1.17693950891312499e02,
    5.37181101862009858e02,
    1.62138957456669019e03,
    3.29079923573345963e03,
    4.36261909014324716e03,
    3.43936767414372164e03,
    1.23033935480374942e03,
)
_TAIL_P = (
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
    1.63153871373020978e-2,
)
_TAIL_Q = (
    2.56852019228982242e00,
    1.87295284992346047e00,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)
_LANCZOS = (
    0.99999999999980993227684700473478,
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)
_BERNOULLI = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
)


def in_double(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of doubles applied to any real float type, rounded back once."""

    def compute(*arrays: Array) -> Array:
        dtype = arrays[0].dtype
        return np.asarray(function(*(a.astype(np.float64) for a in arrays))).astype(dtype)

    return compute


def _erf_small(x: Array) -> Array:
    square = x * x
    top, bottom = _ERF_P[4] * square, square
    for p, q in zip(_ERF_P[:3], _ERF_Q[:3], strict=True):
        top, bottom = (top + p) * square, (bottom + q) * square
    return x * (top + _ERF_P[3]) / (bottom + _ERF_Q[3])


def _erfc_positive(y: Array) -> Array:
    """erfc on y >= 0.46875."""
    middle, far = np.minimum(y, 4.0), np.maximum(y, 4.0)
    top, bottom = _ERFC_P[8] * middle, middle
    for p, q in zip(_ERFC_P[:7], _ERFC_Q[:7], strict=True):
        top, bottom = (top + p) * middle, (bottom + q) * middle
    near = (top + _ERFC_P[7]) / (bottom + _ERFC_Q[7])
    square = 1 / (far * far)
    top, bottom = _TAIL_P[5] * square, square
    for p, q in zip(_TAIL_P[:4], _TAIL_Q[:4], strict=True):
        top, bottom = (top + p) * square, (bottom + q) * square
    tail = square * (top + _TAIL_P[4]) / (bottom + _TAIL_Q[4])
    tail = (1 / np.sqrt(np.pi) - tail) / far
    head = np.trunc(y * 16) / 16
    scale = np.exp(-head * head) * np.exp(-(y - head) * (y + head))
    return np.where(np.isinf(y), 0.0, scale * np.where(y <= 4.0, near, tail))


@in_double
def erf(x: Array) -> Array:
    """The error function."""
    y = np.abs(x)
    large = np.sign(x) * (1 - _erfc_positive(np.maximum(y, 0.46875)))
    return np.where(
        np.isnan(x), x, np.where(y <= 0.46875, _erf_small(np.minimum(y, 0.5) * np.sign(x)), large)
    )


@in_double
def erfc(x: Array) -> Array:
    """1 - erf(x), without cancellation for large x."""
    y = np.abs(x)
    large = _erfc_positive(np.maximum(y, 0.46875))
    small = 1 - _erf_small(np.minimum(y, 0.5) * np.sign(x))
    return np.where(
        np.isnan(x), x, np.where(y <= 0.46875, small, np.where(x < 0, 2 - large, large))
    )


@in_double
def erf_inv(x: Array) -> Array:
    """The inverse of `erf` on (-1, 1); ±inf at ±1, NaN beyond."""
    inside = np.abs(x) < 1
    safe = np.where(inside, x, 0.0)
    w = -np.log1p(-safe * safe)
    near, far = w - 2.5, np.sqrt(np.maximum(w, 5.0)) - 3
    central = np.polyval(_GILES_CENTRAL, near)
    outer = np.polyval(_GILES_TAIL, far)
    guess = np.where(w < 5, central, outer) * safe
    for _ in range(3):
        error = np.where(
            np.abs(safe) < 0.5,
            erf(guess) - safe,
            np.sign(safe) * ((1 - np.abs(safe)) - erfc(np.abs(guess))),
        )
        step = error * (np.sqrt(np.pi) / 2) * np.exp(guess * guess)
        guess = guess - step / (1 + guess * step)
    edge = np.where(np.abs(x) == 1, np.copysign(np.inf, x), np.nan)
    return np.where(inside, guess, edge)


_GILES_CENTRAL = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_GILES_TAIL = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)


def _lgamma_positive(x: Array) -> Array:
    """log Γ(x) for x >= 0.5."""
    z = x - 1
    total = np.full_like(z, _LANCZOS[0])
    for i, coefficient in enumerate(_LANCZOS[1:], 1):
        total = total + coefficient / (z + i)
    t = z + 7.5
    value = 0.5 * np.log(2 * np.pi) + (z + 0.5) * np.log(t) - t + np.log(total)
    return np.where(np.isinf(x), np.inf, value)


@in_double
def lgamma(x: Array) -> Array:
    """log |Γ(x)|; inf at the poles."""
    reflect = x < 0.5
    positive = _lgamma_positive(np.where(reflect, 1 - x, x))
    fraction = np.abs(x) - np.floor(np.abs(x))
    reflected = np.log(np.pi) - np.log(np.abs(np.sin(np.pi * fraction))) - positive
    poles = (x <= 0) & (np.floor(x) == x)
    return np.where(poles | np.isinf(x), np.inf, np.where(reflect, reflected, positive))


@in_double
def digamma(x: Array) -> Array:
    """The derivative of log Γ; NaN at zero and the negative integers."""
    reflect = x < 0.5
    y = np.where(reflect, 1 - x, x)
    shift = np.zeros_like(y)
    for _ in range(10):
        small = y < 10
        shift = shift - np.where(small, 1 / y, 0.0)
        y = np.where(small, y + 1, y)
    square = 1 / (y * y)
    series = np.zeros_like(y)
    for i in range(8, 0, -1):
        series = (series + _BERNOULLI[i - 1] / (2 * i)) * square
    value = np.log(y) - 0.5 / y - series + shift
    value = np.where(np.isposinf(x), np.inf, value)
    fraction = x - np.round(x)
    reflected = value - np.pi / np.tan(np.pi * fraction)
    poles = (x <= 0) & (np.floor(x) == x)
    return np.where(poles, np.nan, np.where(reflect, reflected, value))


@in_double
def zeta(x: Array, q: Array) -> Array:
    """Hurwitz' zeta function Σ 1/(q+k)^x for x > 1, by Euler and Maclaurin."""
    terms = 12
    total = np.zeros(np.broadcast_shapes(x.shape, q.shape))
    for k in range(terms):
        total = total + np.power(q + k, -x)
    a = q + terms
    total = total + np.power(a, 1 - x) / (x - 1) + 0.5 * np.power(a, -x)
    factor, power = x, np.power(a, -x - 1)
    for i, bernoulli in enumerate(_BERNOULLI, 1):
        total = total + bernoulli / factorial(2 * i) * factor * power
        factor = factor * (x + 2 * i - 1) * (x + 2 * i)
        power = power / (a * a)
    pole = (q <= 0) & (np.floor(q) == q)
    return np.where(x == 1, np.inf, np.where(x < 1, np.nan, np.where(pole, np.inf, total)))


@in_double
def polygamma(n: Array, x: Array) -> Array:
    """The n-th derivative of digamma, n a non-negative integer."""
    sign = np.where(n % 2 == 1, 1.0, -1.0)
    higher = sign * np.exp(lgamma(n + 1)) * zeta(np.maximum(n + 1, 2.0), x)
    whole = (n >= 0) & (np.floor(n) == n)
    return np.where(whole, np.where(n == 0, digamma(x), higher), np.nan)


@in_double
def bessel_i1e(x: Array) -> Array:
    """The modified Bessel function I₁, scaled by exp(-|x|)."""
    y = np.abs(x)
    angles = (np.arange(2000) + 0.5) * (np.pi / 2000)
    flat = y.reshape(-1, 1)
    # The midpoint rule on a periodic integrand converges geometrically.
    integrand = np.exp(flat * (np.cos(angles) - 1)) * np.cos(angles)
    return (np.sign(x) * integrand.mean(axis=1).reshape(y.shape)).astype(np.float64)


def next_after(a: Array, b: Array) -> Array:
    """The representable value after `a` towards `b`."""
    return np.nextafter(a, b)
