"""Broken modules: how the tests of the reader break good ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

PIECES = (
    "(",
    ")",
    "<",
    ">",
    "[",
    "]",
    "{",
    "}",
    '"',
    "'",
    "%0",
    "%0#7",
    "#loc1",
    "#a = #a",
    "!t = !t",
    "^bb0:",
    "@main",
    "->",
    ":",
    "=",
    ",",
    "-",
    "0x",
    "0xFF800000",
    "999999999999999999999999",
    "-1",
    "1.0e999",
    "\\",
    "\x00",
    "\ud800",
    "//",
    "\n",
    "tensor<",
    "tensor<4294967296x4294967296xf32>",
    "tensor<*xf32>",
    "tensor<?xf32>",
    "tensor<2x!stablehlo.token>",
    "i99999999",
    "dense<",
    "dense<0> : tensor<1000000000xi8>",
    'dense<"0x00"> : tensor<1000000000xf32>',
    "dense_resource<a> : tensor<f32>",
    "loc(",
    "loc(callsite(#loc at #loc))",
    "{-#",
    "stablehlo.add",
    '"stablehlo.add"',
    "stablehlo.while",
    "stablehlo.reduce",
    "func.func",
    "module",
    "#stablehlo.dot<",
    "#sdy.sharding<@mesh, [{",
    "affine_map<(d0) -> (d0)>",
    "array<i64: 1, 2>",
    "true",
    "unit",
)


def _delete(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text))
    return text[:start] + text[start + rng.choice((1, 1, 1, 3, 20, 300)) :]


def _insert(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text))
    return text[:start] + rng.choice(PIECES) + text[start:]


def _replace(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text))
    return text[:start] + rng.choice(PIECES) + text[start + rng.choice((1, 2, 8)) :]


def _character(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text))
    return (
        text[:start] + chr(rng.choice((0, 9, 33, 37, 64, 127, 955, 0x10FFFF))) + text[start + 1 :]
    )


def _copy(text: str, rng: random.Random) -> str:
    start, to = rng.randrange(len(text)), rng.randrange(len(text))
    return text[:to] + text[start : start + rng.choice((2, 10, 80, 500))] + text[to:]


def _swap_lines(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def _drop_line(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    del lines[rng.randrange(len(lines))]
    return "\n".join(lines)


def _truncate(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text))]


def _digit(text: str, rng: random.Random) -> str:
    places = [i for i, c in enumerate(text) if c.isdigit()]
    if not places:
        return text
    place = rng.choice(places)
    return text[:place] + rng.choice(("0", "7", "13", "4294967296", "-1")) + text[place + 1 :]


MUTATIONS: Sequence[Callable[[str, random.Random], str]] = (
    _delete,
    _insert,
    _replace,
    _character,
    _copy,
    _swap_lines,
    _drop_line,
    _truncate,
    _digit,
)


def mutated(text: str, rng: random.Random) -> str:
    """The text with one to three faults in it (now and then it stays valid)."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if text:
            text = rng.choice(MUTATIONS)(text, rng)
    return text
