"""`partir-opt`: xDSL's opt tool with partir's reader, printer, dialects and passes.

```
partir-opt step.mlir -p 'partir-prepare,partir-loops'
```

Exit status: 0 done, 2 the input is at fault (`error: …` on standard error), 70 a fault of ours.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException, ParseError
from xdsl.utils.frontend import Frontend
from xdsl.utils.target import Target
from xdsl.xdsl_opt_main import xDSLOptMain

from ..partir_dialect.errors import PartirError
from ..partir_dialect.printer import print_module
from ..partir_dialect.reader import read_module

_USER_FAULTS = (PartirError, DiagnosticException, ParseError)


@dataclass(frozen=True)
class PartirFrontend(Frontend):
    """Reads `.mlir` files, pretty or generic, with or without locations."""

    name = "mlir"
    no_implicit_module: bool = False

    def parse(self, ctx: Context, input: IO[bytes], input_name: str) -> ModuleOp:
        return read_module(input.read(), input_name)


@dataclass(frozen=True)
class PartirTarget(Target):
    """Prints modules, pretty unless the generic form is asked for."""

    name = "mlir"
    print_generic_format: bool = False
    print_properties_as_attributes: bool = False
    print_debuginfo: bool = False
    syntax_highlight: bool = False

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        text = print_module(
            module, pretty=not self.print_generic_format, locations=self.print_debuginfo
        )
        output.write(text if text.endswith("\n") else text + "\n")


class PartirOptMain(xDSLOptMain):
    """xDSL's opt tool, with `.mlir` files routed through partir's reader and printer."""

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.prog = "partir-opt"

    def register_all_frontends(self) -> None:
        super().register_all_frontends()
        self.available_frontends["mlir"] = lambda: PartirFrontend

    def register_all_targets(self) -> None:
        super().register_all_targets()
        self.available_targets["mlir"] = lambda: PartirTarget

    def parse_chunk(
        self, chunk: IO[bytes], file_extension: str, start_offset: int = 0
    ) -> ModuleOp | None:
        """Errors say the line of the whole file, even in the middle of a split one."""
        from io import BytesIO

        padded = BytesIO(b"\n" * start_offset + chunk.read())
        try:
            return super().parse_chunk(padded, file_extension, start_offset)
        except PartirError as error:
            if not self.args.parsing_diagnostics:
                raise
            print(error.render())
            return None


def _status(tool: Callable[[], None], debug: bool) -> int:
    try:
        tool()
    except _USER_FAULTS as error:
        if debug:
            raise
        text = error.render() if isinstance(error, PartirError) else f"error: {error}"
        print(text, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool on `arguments` (default: the command line) and returns its exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    rest = [argument for argument in arguments if argument != "--debug"]
    description = "xDSL's opt tool with partir's dialects and passes"
    return _status(lambda: PartirOptMain(description, rest).run(), debug)


if __name__ == "__main__":
    sys.exit(main())
