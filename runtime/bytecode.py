"""MLIR bytecode on standard input to generic text on standard output, by jaxlib.

Run as a process of its own (`python -m partir.runtime.bytecode`), since bytecode that is broken can
end the process that decodes it. Portable artifacts (VHLO) are taken too.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

ARTIFACT = b"StableHLO_v"
"""How the producer string of a portable artifact begins."""


def decode(source: bytes) -> str:
    """The generic text with locations. Raises jaxlib's errors; exits if jaxlib is not there."""
    try:
        ir: Any = importlib.import_module("jaxlib.mlir.ir")
        registration: Any = importlib.import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext")
    except ImportError:
        sys.exit("JAX is needed for this: pip install 'partir[jax]'")
    registry = ir.DialectRegistry()
    registration.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    dialects = {
        name: importlib.import_module(f"jaxlib.mlir.dialects.{name}")
        for name in ("stablehlo", "sdy", "chlo")
    }
    for dialect in dialects.values():
        dialect.register_dialect(context)
    stablehlo: Any = dialects["stablehlo"]
    with context:
        if ARTIFACT in source[:16]:
            module = stablehlo.deserialize_portable_artifact(context, source)
        else:
            module = ir.Module.parse(source)
        module.operation.verify()
        return module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)


if __name__ == "__main__":
    sys.stdout.buffer.write(decode(sys.stdin.buffer.read()).encode())
