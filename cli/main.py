"""How is partir run from a shell: the commands, their exit status, and how an error is shown.

Exit status: 0 done; 1 an expectation or a verification failed; 2 the input is at fault; 70 a fault
of partir's own; 130 interrupted. Each command is a module with `HELP`, `EXAMPLE`,
`configure(parser)` and `run(arguments) -> int`; whatever is slow to import is imported by `run`.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType

from ..partir_dialect.errors import PartirError
from . import (
    absent,
    calibrate,
    check,
    devices,
    diff,
    explain,
    fmt,
    partition,
    plan,
    report,
    run,
    search,
    verify,
)

COMMANDS: dict[str, ModuleType] = {
    "partition": partition,
    "search": search,
    "verify": verify,
    "explain": explain,
    "run": run,
    "plan": plan,
    "diff": diff,
    "report": report,
    "check": check,
    "fmt": fmt,
    "calibrate": calibrate,
    "devices": devices,
}

ABSENT = frozenset(name for name, module in COMMANDS.items() if module.run is absent.run)
"""Commands of the interface that this version does not have: they take any arguments."""

USER_FAULT = 2
OWN_FAULT = 70
INTERRUPTED = 130

DESCRIPTION = """\
Turns a global StableHLO program into the program that every device of a mesh runs, following a
script of tactics; says after each what it costs, and shows that the numbers stay the same."""

EPILOG = """\
example: partir partition step.mlir --mesh batch=4,model=2 --tactics zero3.tactic -o out.mlir
"""


def build_parser() -> argparse.ArgumentParser:
    """The command line with all its sub-commands."""
    parser = argparse.ArgumentParser(
        prog="partir",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, module in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=module.HELP[0].upper() + module.HELP[1:] + ".",
            epilog=f"example: {module.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.configure(command)
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line (`sys.argv` by default); returns the exit status."""
    parser = build_parser()
    arguments, rest = parser.parse_known_args(argv)
    if rest and arguments.command not in ABSENT:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if arguments.version:
        from importlib.metadata import version

        print(version("partir"))
        return 0
    if arguments.command is None:
        parser.print_usage(sys.stderr)
        print("partir: error: which command? see partir --help", file=sys.stderr)
        return USER_FAULT
    try:
        return arguments.run(arguments)
    except KeyboardInterrupt:
        print("partir: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stdout = None
        return 0
    except Exception as error:
        return show_error(error, debug=arguments.debug)


def show_error(error: Exception, *, debug: bool = False) -> int:
    """Writes the error to standard error; returns the exit status that it stands for."""
    if debug:
        traceback.print_exception(error)
    if isinstance(error, PartirError):
        print(error.render(), file=sys.stderr)
        for note in getattr(error, "__notes__", ()):
            print(f"note: {note}", file=sys.stderr)
        return error.exit_status
    if type(error).__module__ == "xdsl.utils.exceptions":
        print(f"error: {error}", file=sys.stderr)
        return USER_FAULT
    print(f"error: internal: {type(error).__name__}: {error}", file=sys.stderr)
    if not debug:
        print("This is a fault of partir; --debug shows where.", file=sys.stderr)
    return OWN_FAULT


if __name__ == "__main__":
    sys.exit(main())
