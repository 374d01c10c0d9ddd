"""What a tile-mapping rule says of one op: its factors, as in an einsum, and what it is linear in.

A rule is data. `dot_general` is `([b,i,k],[b,k,j])->([b,i,j])` with `k` a sum: four factors and,
for each dimension of each operand and result, the factors it is made of, major to minor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from xdsl.ir import Operation

REDUCERS = frozenset({"add", "max", "min", "mul", "and", "or"})
IDEMPOTENT = frozenset({"max", "min", "and", "or"})
"""The reducers with a⊕a = a: what is counted on every device is counted once."""


class Kind(Enum):
    """What tiling an axis along a factor means (DESIGN, section 3)."""

    PARALLEL = "parallel"
    REDUCTION = "reduction"
    SPECIAL = "special"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Factor:
    """One letter of the einsum: its size in elements and its kind.

    `reducer` is the combining operation of a REDUCTION, and of a SPECIAL factor that no result has:
    there the rewrite leaves a partial result on each device (a masked gather, to be added).
    `rewrite` names the device-local rewrite that tiling needs (None: the op is merely retyped); a
    factor whose rewrite the lowering does not have counts as BLOCKED. A SPECIAL factor without a
    rewrite is BLOCKED.

    A SPECIAL factor may join dimensions of different sizes (pad, slice, a convolution's space); its
    size is then their greatest common divisor, so that an axis that divides it divides them all.
    """

    size: int
    kind: Kind = Kind.PARALLEL
    reducer: str | None = None
    rewrite: str | None = None


@dataclass(frozen=True, slots=True)
class Linearity:
    """The op commutes with ⊕ in `reducers` in these operands: f(a⊕b) = f(a)⊕f(b).

    `joint`: all of `operands` together must be partial (an addition, a concatenation); otherwise
    each may be partial alone while the rest is equal on all devices (a product).
    """

    operands: frozenset[int]
    joint: bool
    reducers: frozenset[str]


Dims = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """The factor table of one op.

    `operands[k][d]` and `results[k][d]` are the factors (indices into `factors`) of dimension d,
    major to minor; their sizes multiply to the dimension's size, and a dimension of size 1 may have
    none.
    """

    factors: tuple[Factor, ...]
    operands: tuple[Dims, ...]
    results: tuple[Dims, ...]
    linear: tuple[Linearity, ...] = ()


RuleFunction = Callable[[Operation], Rule]
