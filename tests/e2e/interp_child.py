"""The other side of `test_interp_oracle.py`: runs texts on XLA or in StableHLO's own interpreter.

Reads pickled `(oracle, text, inputs)` from standard input, writes pickled results (or the text of
an error) one after the other to standard output. In a process of its own because jaxlib can be
killed by its input.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"  # compiles twice as fast

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import backend as extended
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, stablehlo
from jaxlib.xla_client import DeviceList

Array = np.ndarray[Any, np.dtype[Any]]


def on_xla(text: str, inputs: Sequence[Array]) -> list[Array]:
    """Compiles and runs `main` on one CPU device."""
    backend = extended.get_backend("cpu")
    devices = DeviceList(tuple(backend.devices()[:1]))
    options = extended.get_compile_options(1, 1)
    executable = backend.compile_and_load(text, devices, options)
    arrays = [jax.device_put(x) for x in inputs]
    shards = executable.execute_sharded(arrays).disassemble_into_single_device_arrays()
    return [np.asarray(shard[0]) for shard in shards]


def context() -> ir.Context:
    """An MLIR context with the dialects of the oracle."""
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    made = ir.Context()
    made.append_dialect_registry(registry)
    made.load_all_available_dialects()
    for dialect in (stablehlo, chlo):
        dialect.register_dialect(made)
    stablehlo.register_interpreter_dialect(made)
    return made


def in_reference(text: str, inputs: Sequence[Array]) -> list[Array]:
    """Evaluates `main` by StableHLO's reference interpreter."""
    with context():
        module = ir.Module.parse(text)
        arguments = [_attribute(x) for x in inputs]
        return [np.array(result) for result in stablehlo.eval_module(module, arguments)]


def _attribute(x: Array) -> Any:
    get: Any = ir.DenseElementsAttr.get
    if x.dtype == np.bool_:
        packed = np.packbits(x.reshape(-1), bitorder="little")
        type_ = ir.IntegerType.get_signless(1)
        return get(packed, type=type_, shape=list(x.shape))
    return get(x.copy(), signless=x.dtype.kind != "u", shape=list(x.shape))


ORACLES: dict[str, Callable[[str, Sequence[Array]], list[Array]]] = {
    "xla": on_xla,
    "reference": in_reference,
}


def main() -> None:
    """Answers requests until there are no more."""
    jax.config.update("jax_enable_x64", True)
    jax.block_until_ready(jnp.linalg.qr(jnp.ones((2, 2), "float32")))  # loads LAPACK
    answers = sys.stdout.buffer
    while True:
        try:
            oracle, text, inputs = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer: Any = ORACLES[oracle](text, inputs)
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
