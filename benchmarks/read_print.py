"""How fast are the reader and the printer, beside jaxlib's in C++?

`python benchmarks/read_print.py [PROGRAM …]` prints medians of five runs in the same process:
reading and verifying, and printing in generic form, ours and jaxlib's. The default program is
t_train_L32 of the shared folder (`PARTIR_SHARED`, default `../shared`).
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from partir.partir_dialect.printer import print_module
from partir.partir_dialect.reader import read_module, verify_module

SHARED = Path(os.environ.get("PARTIR_SHARED", Path(__file__).resolve().parents[2] / "shared"))
RUNS = 5
PHASES = ("read", "verify", "print", "pretty", "jaxlib read+verify", "jaxlib print")

_T = TypeVar("_T")


def _jaxlib() -> tuple[Any, Callable[[], Any]]:
    """jaxlib's IR module, and what makes a context with StableHLO, CHLO and sdy."""
    ir: Any = import_module("jaxlib.mlir.ir")
    registration: Any = import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext")
    dialects: list[Any] = [
        import_module(f"jaxlib.mlir.dialects.{name}") for name in ("stablehlo", "sdy", "chlo")
    ]
    registry = ir.DialectRegistry()
    registration.register_dialects(registry)

    def context() -> Any:
        made = ir.Context()
        made.append_dialect_registry(registry)
        made.load_all_available_dialects()
        for dialect in dialects:
            dialect.register_dialect(made)
        return made

    return ir, context


def medians(path: Path, runs: int = RUNS) -> dict[str, float]:
    """The median seconds of each phase; ours and jaxlib's alternate, so that load hits both."""
    ir, context = _jaxlib()
    text = path.read_text(encoding="utf-8")
    name = str(path)
    rounds = [_round(ir, context, text, name) for _ in range(runs)]
    return {phase: statistics.median(one[phase] for one in rounds) for phase in PHASES}


def _round(ir: Any, context: Callable[[], Any], text: str, name: str) -> dict[str, float]:
    """The seconds of each phase, once."""
    seconds: dict[str, float] = {}

    def timed(phase: str, work: Callable[[], _T]) -> _T:
        gc.collect()  # what earlier phases left behind is not this one's to clear away
        start = time.perf_counter()
        result = work()
        seconds[phase] = time.perf_counter() - start
        return result

    def theirs() -> Any:
        module = ir.Module.parse(text)
        module.operation.verify()
        return module

    module = timed("read", lambda: read_module(text, name))
    with context():
        other = timed("jaxlib read+verify", theirs)
        timed("print", lambda: print_module(module))
        timed("jaxlib print", lambda: other.operation.get_asm(print_generic_op_form=True))
    timed("pretty", lambda: print_module(module, pretty=True))
    timed("verify", lambda: verify_module(module, text, name))
    return seconds


def ratios(found: dict[str, float]) -> tuple[float, float]:
    """Reading beside jaxlib's parsing and verifying; printing beside its generic printing."""
    return (
        found["read"] / found["jaxlib read+verify"],
        found["print"] / found["jaxlib print"],
    )


def main(arguments: list[str]) -> int:
    for name in arguments or ["t_train_L32"]:
        path = SHARED / "programs" / f"{name}.mlir"
        if not path.is_file():
            print(f"no such program: {path}", file=sys.stderr)
            return 2
        found = medians(path)
        read, printed = ratios(found)
        print(f"{name}: " + ", ".join(f"{phase} {found[phase]:.3f} s" for phase in PHASES))
        print(f"  read / jaxlib read+verify {read:.2f}, print / jaxlib print {printed:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
