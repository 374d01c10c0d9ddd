"""jaxlib as a second reader, in a process of its own since its input can kill it.

`Reprinter` is the side of the tests: `generic(text)` is what jaxlib prints in generic form after
parsing and verifying `text`, or a `Rejected`. Run as a script it is the other side: JSON requests
on standard input, a JSON answer a line on standard output.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from typing import IO, Any, Self


class Rejected(Exception):
    """jaxlib does not read a text, or died of it."""


class Reprinter:
    """Asks the other process, and starts a new one when it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(BrokenPipeError):
                    if pipe is not None:
                        pipe.close()
            self._process.wait()
            self._process = None

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def _ask(self, request: dict[str, Any]) -> str:
        given, answers = self._pipes()
        try:
            given.write(json.dumps(request) + "\n")
            given.flush()
            answer = answers.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.close()
            raise Rejected("jaxlib died")
        good, text = json.loads(answer)
        if not good:
            raise Rejected(text)
        return text

    def generic(self, text: str, *, unregistered: bool = False, places: bool = False) -> str:
        """What jaxlib prints in generic form. Raises `Rejected`."""
        return self._ask({"text": text, "unregistered": unregistered, "places": places})

    def pretty(self, text: str) -> str:
        """What jaxlib prints in pretty form. Raises `Rejected`."""
        return self._ask({"text": text, "pretty": True})


def _serve() -> None:
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, mpmd, sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)

    def answer(request: dict[str, Any]) -> str:
        context = ir.Context()  # a new one each time: it renames resources it has seen before
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
        for dialect in (stablehlo, sdy, chlo, mpmd):
            dialect.register_dialect(context)
        context.allow_unregistered_dialects = request.get("unregistered", False)
        with context:
            module = ir.Module.parse(request["text"])
            module.operation.verify()
            return module.operation.get_asm(  # pyright: ignore[reportReturnType]
                print_generic_op_form=not request.get("pretty", False),
                enable_debug_info=request.get("places", False),
            )

    for line in sys.stdin:
        try:
            reply = [True, answer(json.loads(line))]
        except Exception as error:
            reply = [False, str(error)[:2000]]
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    _serve()
