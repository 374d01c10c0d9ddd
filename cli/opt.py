"""`partir-opt`: xDSL's opt tool with partir's reader, printer, dialects and passes.

```
partir-opt step.mlir -p 'partir-prepare,partir-loops'
```

Exit status: 0 done, 2 the input is at fault (`error: …` on standard error), 70 a fault of ours.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError
from xdsl.utils.frontend import Frontend
from xdsl.utils.target import Target
from xdsl.xdsl_opt_main import xDSLOptMain

from ..partir_dialect.errors import PartirError
from ..partir_dialect.printer import print_module
from ..partir_dialect.reader import read_module
from .output import output_files

USER_FAULT = 2
OWN_FAULT = 70
_USER_FAULTS = (DiagnosticException, ParseError, OSError)


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


class _Kept(StringIO):
    """What is to be written to a file, once all of it is there."""

    def close(self) -> None:
        """Keeps the text: it is asked for after xDSL has closed its output."""


class PartirOptMain(xDSLOptMain):
    """xDSL's opt tool, with `.mlir` files routed through partir's reader and printer."""

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.prog = "partir-opt"
        arg_parser.add_argument(
            "--debug", action="store_true", help="show the traceback of an error"
        )

    def register_all_frontends(self) -> None:
        super().register_all_frontends()
        self.available_frontends["mlir"] = lambda: PartirFrontend

    def register_all_targets(self) -> None:
        super().register_all_targets()
        self.available_targets["mlir"] = lambda: PartirTarget

    def setup_pipeline(self) -> None:
        """Raises `PartirError` for a pipeline that is misspelt or names no pass."""
        try:
            super().setup_pipeline()
        except (ValueError, ArgSpecParseError) as error:
            known = [name for name in self.available_passes if name.startswith("partir-")]
            raise PartirError(f"{error}; partir's passes are {', '.join(known)}") from error

    def prepare_input(self) -> tuple[list[tuple[IO[bytes], int]], str]:
        """Raises `PartirError` for a file of a kind that nothing reads."""
        try:
            return super().prepare_input()
        except ValueError as error:
            raise PartirError(f"{self.get_input_name()}: {error}") from error

    def prepare_output(self) -> IO[str]:
        return sys.stdout if self.args.output_file is None else self._kept

    def run(self) -> None:
        """Runs the tool; an output file is written at the end, whole, or not at all."""
        if self.args.output_file is None:
            super().run()
            return
        with output_files(self.args.output_file) as (output,):
            self._kept = _Kept()
            super().run()
            assert output is not None
            output.write(self._kept.getvalue())

    def parse_chunk(
        self, chunk: IO[bytes], file_extension: str, start_offset: int = 0
    ) -> ModuleOp | None:
        """Errors say the line of the whole file, even in the middle of a split one."""
        padded = BytesIO(b"\n" * start_offset + chunk.read())
        try:
            return super().parse_chunk(padded, file_extension, start_offset)
        except PartirError as error:
            if not self.args.parsing_diagnostics:
                raise
            print(error.render())
            return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool on `arguments` (default: the command line) and returns its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    try:
        PartirOptMain("xDSL's opt tool with partir's dialects and passes", given).run()
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stdout = None
    except Exception as error:
        return _show(error, debug)
    return 0


def _show(error: Exception, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    if isinstance(error, PartirError):
        print(error.render(), file=sys.stderr)
    elif isinstance(error, _USER_FAULTS):
        print(f"error: {error}", file=sys.stderr)
    else:
        print(f"error: internal: {type(error).__name__}: {error}", file=sys.stderr)
        return OWN_FAULT
    return USER_FAULT


if __name__ == "__main__":
    sys.exit(main())
