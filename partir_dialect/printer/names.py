"""What is a value called in the text? Its own name made unique, else a number, as in MLIR.

A region is numbered as a whole when it is entered: its blocks' arguments and results first, then
the regions inside, each from where the outer one left off. Names of a region are free again when
it is left.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ..dtypes import integer_facts

# pyright: reportPrivateUsage=false

_ARGUMENT = re.compile(r"(?a)arg\d*\Z")
_RESULT_HINTS: dict[str, tuple[str, ...]] = {
    "chlo.top_k": ("values", "indices"),
    "stablehlo.batch_norm_grad": ("grad_operand", "grad_scale", "grad_offset"),
    "stablehlo.batch_norm_training": ("output", "batch_mean", "batch_var"),
    "stablehlo.rng_bit_generator": ("output_state", "output"),
}
_CONSTANTS = frozenset(("chlo.constant", "sdy.constant", "stablehlo.constant"))


UNDEFINED = "%<undefined>"
"""The name of a value that is not defined where it is used; no reader takes it."""


class _Known(dict[int, str]):
    """Names by the identity of values; `UNDEFINED` for any other, at the speed of a dict."""

    def __missing__(self, value: int) -> str:
        return UNDEFINED


Mark = tuple[int, int, int, int]
"""Where numbering stood when a region was entered: numbers, arguments, conflicts, names."""


def _constant_hint(op: Operation) -> str:
    """`c` for integers, `cst` for everything else."""
    element: Attribute | None = getattr(op.results[0].type, "element_type", None)
    return "c" if element is not None and integer_facts(element) else "cst"


class ValueNames:
    """Names of values (`of[id(value)]`), of blocks (`labels`), and what stands before an op of
    several results (`heads`).

    With `pretty` values without a name of their own get the one that StableHLO gives them.
    """

    def __init__(self, *, pretty: bool = False) -> None:
        self.of: dict[int, str] = _Known()
        self.heads: dict[int, str] = {}
        self.labels: dict[int, str] = {}
        self._pretty = pretty
        self._used: set[str] = set()
        self._order: list[str] = []
        self._value = self._argument = self._conflict = 0

    def enter(self, region: Region, hints: Sequence[str] | None = None) -> Mark:
        """Names everything in a region apart from the regions inside; for `leave`.

        `hints` are what the entry block's arguments are called after instead of their own names.
        """
        mark = (self._value, self._argument, self._conflict, len(self._order))
        for index, block in enumerate(region.blocks):
            self.labels[id(block)] = f"^bb{index}"
            self._arguments(block, index == 0, hints if index == 0 else None)
            self._block(block)
        return mark

    def leave(self, mark: Mark) -> None:
        """Frees the names of the region that gave this mark."""
        self._value, self._argument, self._conflict, used = mark
        self._used.difference_update(self._order[used:])
        del self._order[used:]

    def operands(self, op: Operation) -> str:
        """The names of an op's operands."""
        of = self.of
        return ", ".join([of[id(value)] for value in op._operands])

    def head(self, op: Operation) -> str:
        """What stands before an op: `%0 = `, or nothing."""
        results = op.results
        if not results:
            return ""
        return f"{self.of[id(results[0])]} = " if len(results) == 1 else self.heads[id(op)]

    def name(self, value: SSAValue) -> str:
        """The name of a value; of one that is not defined here, a name that cannot be read."""
        return self.of[id(value)]

    def _unique(self, hint: str) -> str:
        if not hint.isascii():  # xDSL takes letters that MLIR does not
            hint = "value"
        name, used = hint, self._used
        while name in used:
            name = f"{hint}_{self._conflict}"
            self._conflict += 1
        used.add(name)
        self._order.append(name)
        return f"%{name}"

    def _number(self) -> str:
        self._value += 1
        return f"%{self._value - 1}"

    def _arguments(self, block: Block, entry: bool, hints: Sequence[str] | None) -> None:
        for index, argument in enumerate(block.args):
            hint = argument._name if hints is None else hints[index]
            if hint is not None and not _ARGUMENT.match(hint):
                name = self._unique(hint)
            elif entry:
                name = self._unique(f"arg{self._argument}")
                self._argument += 1
            else:
                name = self._number()
            self.of[id(argument)] = name

    def _block(self, block: Block) -> None:
        """Names the results of a block's ops. An inner loop: most have one result."""
        of, pretty, number = self.of, self._pretty, self._value
        op = block._first_op
        while op is not None:
            results = op.results
            if len(results) == 1:
                (result,) = results
                hint = result._name
                if hint is None and pretty:
                    (hint,) = self._default_hints(op, [hint])
                if hint is None:
                    of[id(result)] = f"%{number}"
                    number += 1
                else:
                    of[id(result)] = self._unique(hint)
            elif results:
                self._value = number
                self._results(op)
                number = self._value
            op = op._next_op
        self._value = number

    def _results(self, op: Operation) -> None:
        """Names several results."""
        results = op.results
        hints = [result._name for result in results]
        if self._pretty and hints[0] is None:
            hints = self._default_hints(op, hints)
        starts = [i for i, hint in enumerate(hints) if not i or hint not in (None, hints[i - 1])]
        heads = [
            self._group(results[start:end], hints[start])
            for start, end in zip(starts, [*starts[1:], len(hints)], strict=True)
        ]
        self.heads[id(op)] = f"{', '.join(heads)} = "

    def _group(self, results: Sequence[SSAValue], hint: str | None) -> str:
        """Names results that share a name; the answer is `%name` or `%name:2`."""
        name = self._number() if hint is None else self._unique(hint)
        if len(results) == 1:
            self.of[id(results[0])] = name
            return name
        for index, result in enumerate(results):
            self.of[id(result)] = f"{name}#{index}"
        return f"{name}:{len(results)}"

    def _default_hints(self, op: Operation, hints: list[str | None]) -> list[str | None]:
        if op.name in _CONSTANTS and len(hints) == 1:
            return [_constant_hint(op)]
        given: Any = _RESULT_HINTS.get(op.name)
        return list(given) if given is not None and len(given) == len(hints) else hints
