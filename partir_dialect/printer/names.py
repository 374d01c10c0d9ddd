"""What is a value called in the text? Its own name made unique, else a number."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, OpResult, SSAValue

# pyright: reportPrivateUsage=false


class ValueNames:
    """The names of one isolated op; `of` maps `id(value)` to `%name`."""

    def __init__(self) -> None:
        self.of: dict[int, str] = {}
        self._used: dict[str, int] = {}
        self._next = 0
        self._next_argument = 0
        self.labels: dict[int, str] = {}

    def _unique(self, hint: str) -> str:
        name = hint
        while name in self._used:
            count = self._used[hint]
            self._used[hint] = count + 1
            name = f"{hint}_{count}"
        self._used[name] = 0
        return name

    def results(self, results: Sequence[SSAValue]) -> str:
        """Names the results of an op; the answer is what stands before its `=`."""
        known = self.of.get(id(results[0]))
        if known is not None:  # used before it stands in the text, in another block
            return known if len(results) == 1 else f"{known[:-2]}:{len(results)}"
        hint = results[0]._name
        if hint is None or hint[0].isdigit():
            name = f"%{self._next}"
            self._next += 1
        else:
            name = "%" + self._unique(hint)
        if len(results) == 1:
            self.of[id(results[0])] = name
            return name
        for index, result in enumerate(results):
            self.of[id(result)] = f"{name}#{index}"
        return f"{name}:{len(results)}"

    def operands(self, op: Operation) -> str:
        """The names of an op's operands."""
        of = self.of
        try:
            return ", ".join([of[id(value)] for value in op._operands])
        except KeyError:
            return ", ".join([self.ahead(value) for value in op._operands])

    def ahead(self, value: SSAValue) -> str:
        """The name of a value that perhaps stands further down in the text."""
        if id(value) not in self.of:
            if isinstance(value, OpResult):
                self.results(value.op.results)
            else:
                self.argument(value)
        return self.of[id(value)]

    def argument(self, argument: SSAValue) -> str:
        """Names a block argument: `%arg0`, or its own name."""
        if id(argument) in self.of:
            return self.of[id(argument)]
        hint = argument._name
        if hint is None or hint[0].isdigit() or hint.startswith("arg"):
            hint = f"arg{self._next_argument}"
            self._next_argument += 1
        name = "%" + self._unique(hint)
        self.of[id(argument)] = name
        return name

    def label(self, block: Block) -> str:
        """The label of a block: `^bb0`."""
        return self.labels.setdefault(id(block), f"^bb{len(self.labels)}")
