"""What does MLIR bytecode say? jaxlib knows, if it is installed.

jaxlib decodes in a process of its own (`python -m partir.partir_dialect.reader.bytecode`, bytecode
on standard input, generic text on standard output), since broken bytecode can end its process.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

from ..errors import ReadError, Span

BYTECODE = b"ML\xefR"
"""How MLIR bytecode begins."""
_ARTIFACT = b"StableHLO_v"
_MISSING = "reading MLIR bytecode needs JAX: pip install 'partir[jax]'"


def bytecode_text(data: bytes, filename: str) -> str:
    """The generic text, with locations, of MLIR bytecode or of a portable artifact (VHLO).

    Raises `ReadError` if jaxlib is missing or cannot decode the bytes.
    """
    command = [sys.executable, "-m", f"{__package__}.bytecode"]
    run = subprocess.run(command, input=data, capture_output=True, check=False)
    if run.returncode == 0:
        return run.stdout.decode("utf-8", "surrogateescape")
    lines = run.stderr.decode("utf-8", "replace").strip().splitlines()
    told = [line for line in lines if "error:" in line] or lines[-1:]
    why = told[0] if told and run.returncode > 0 else f"the decoder died ({run.returncode})"
    span = Span(filename, 1, 1)
    if _MISSING in why:
        raise ReadError(_MISSING, span=span)
    raise ReadError(f"cannot be read as MLIR bytecode: {why}", span=span)


def _context(ir: Any, modules: dict[str, Any]) -> Any:
    registration: Any = importlib.import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext")
    registry = ir.DialectRegistry()
    registration.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in modules.values():
        dialect.register_dialect(context)
    return context


def _decode(data: bytes) -> str:
    try:
        ir: Any = importlib.import_module("jaxlib.mlir.ir")
        modules: dict[str, Any] = {
            name: importlib.import_module(f"jaxlib.mlir.dialects.{name}")
            for name in ("stablehlo", "sdy", "chlo")
        }
    except ImportError:
        sys.exit(_MISSING)
    with _context(ir, modules) as context:
        if _ARTIFACT in data[:24]:
            module = modules["stablehlo"].deserialize_portable_artifact(context, data)
        else:
            module = ir.Module.parse(data)
        return module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)


if __name__ == "__main__":
    sys.stdout.buffer.write(_decode(sys.stdin.buffer.read()).encode("utf-8", "surrogateescape"))
