"""What does the program compute on real XLA devices, and does XLA take it at all?

A device-local StableHLO module is handed to XLA through JAX's public API: an exported stub of the
same signature is made to carry the module's text, and is called once a device inside `shard_map`
over one axis that holds all devices of the mesh. Each argument travels as one array whose leading
dimension counts devices, so no placement has to be known here.

JAX is imported when the first program is compiled; it comes with `partir[jax]`.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..partir_dialect.dtypes import FLOAT_TYPES, numpy_dtype
from ..partir_dialect.errors import LoweringError, PartirError
from ..partir_dialect.mesh import Mesh

AXIS = "device"
_UNOPTIMISED = {"xla_backend_optimization_level": "0"}
_FORCE = "--xla_force_host_platform_device_count"

Values = Sequence[np.ndarray]


@dataclass(frozen=True)
class TensorShape:
    """The shape (elements) and dtype of one argument or result on one device."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]


@dataclass(frozen=True)
class Signature:
    """What `main` of a module takes and gives on one device."""

    arguments: tuple[TensorShape, ...]
    results: tuple[TensorShape, ...]


def import_jax(devices: int = 1, platform: str = "cpu") -> Any:
    """JAX with at least `devices` devices of `platform`.

    On CPU as many are simulated, if JAX was not started before. Raises `PartirError` where JAX is
    not installed or has too few devices.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if platform == "cpu" and "jax" not in sys.modules and _FORCE not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_FORCE}={max(devices, 8)}".strip()
    try:
        jax: Any = importlib.import_module("jax")
    except ImportError as error:
        raise PartirError("JAX is needed for this: pip install 'partir[jax]'") from error
    try:
        found = len(jax.devices(platform))
    except RuntimeError as error:
        raise PartirError(f"no such devices for JAX: {platform!r}") from error
    if found < devices:
        raise PartirError(f"{devices} {platform} devices are needed, JAX has {found}")
    return jax


def _dtype(text: str) -> np.dtype[np.generic]:
    """The dtype of an element type as MLIR spells it."""
    if text in FLOAT_TYPES:
        return numpy_dtype(FLOAT_TYPES[text])
    if inner := re.fullmatch(r"complex<(f32|f64)>", text):
        return np.dtype(np.complex64 if inner[1] == "f32" else np.complex128)
    if integer := re.fullmatch(r"(u?)i(\d+)", text):
        width = int(integer[2])
        if width == 1:
            return np.dtype(np.bool_)
        if width >= 8:
            return np.dtype(f"{integer[1]}int{width}")
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, f"{integer[1]}int{width}"))
    raise PartirError(f"XLA takes no argument of element type, got: {text}")


def _parse(text: str) -> tuple[Any, Signature]:
    """The module as jaxlib reads it, with its signature; raises `LoweringError` if it does not."""
    ir: Any = importlib.import_module("jax.extend.mlir.ir")
    mlir: Any = importlib.import_module("jax.interpreters.mlir")
    context = mlir.make_ir_context()
    with context:
        try:
            module = ir.Module.parse(text)
            module.operation.verify()
        except ir.MLIRError as error:
            raise LoweringError(f"StableHLO does not accept the module: {error}") from error
        functions = [op for op in module.body.operations if op.operation.name == "func.func"]
        names = [ir.StringAttr(op.attributes["sym_name"]).value for op in functions]
        if "main" not in names:
            raise LoweringError(f"the module has no function main, got: {names}")
        main = functions[names.index("main")]
        kind = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
        sides = ([ir.RankedTensorType(t) for t in types] for types in (kind.inputs, kind.results))
        arguments, results = (
            tuple(TensorShape(tuple(t.shape), _dtype(str(t.element_type))) for t in side)
            for side in sides
        )
    return module, Signature(arguments, results)


def check_stablehlo(text: str) -> Signature:
    """Parses and verifies a module with jaxlib's StableHLO; raises `LoweringError`."""
    import_jax()
    return _parse(text)[1]


class Executable:
    """A device-local module, compiled for the first devices of a platform.

    Values go in and come out as `[device][argument or result]`, devices numbered as in `Mesh`.
    `optimise=False` compiles in half the time what is run once. Raises `LoweringError` if
    StableHLO or XLA refuses the module.
    """

    def __init__(
        self, text: str, devices: int, platform: str = "cpu", *, optimise: bool = True
    ) -> None:
        start = time.perf_counter()
        self.devices = devices
        self._jax = import_jax(devices, platform)
        with self._jax.enable_x64(True):
            self._compile(text, platform, {} if optimise else _UNOPTIMISED)
        self.compile_seconds = time.perf_counter() - start

    def _compile(self, text: str, platform: str, options: dict[str, str]) -> None:
        jax = self._jax
        self.signature = _parse(text)[1]
        mesh = jax.sharding.Mesh(np.array(jax.devices(platform)[: self.devices]), (AXIS,))
        spec = jax.sharding.PartitionSpec(AXIS)
        self._sharding = jax.sharding.NamedSharding(mesh, spec)
        call = _exported(jax, text, self.signature, platform).call

        def local(*stacked: Any) -> tuple[Any, ...]:
            results = call(*(value[0] for value in stacked))
            return tuple(value[None] for value in results)

        function = jax.shard_map(local, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
        stacked = [
            jax.ShapeDtypeStruct((self.devices, *a.shape), a.dtype, sharding=self._sharding)
            for a in self.signature.arguments
        ]
        try:
            self._run = jax.jit(function).lower(*stacked).compile(options)
        except jax.errors.JaxRuntimeError as error:
            raise LoweringError(f"XLA does not compile the module: {error}") from error

    def put(self, values: Sequence[Values]) -> list[Any]:
        """Moves `values[device][argument]` to the devices: one stacked array an argument.

        Raises `PartirError` if a value has not the shape and dtype that the program takes.
        """
        for device, given in enumerate(values):
            for k, (value, want) in enumerate(zip(given, self.signature.arguments, strict=True)):
                if value.shape != want.shape or value.dtype != want.dtype:
                    raise PartirError(
                        f"argument {k} on device {device} must be {want.dtype}{list(want.shape)}, "
                        f"got: {value.dtype}{list(value.shape)}"
                    )
        with self._jax.enable_x64(True):
            return [
                self._jax.device_put(np.stack(column), self._sharding)
                for column in zip(*values, strict=True)
            ]

    def call(self, arguments: Sequence[Any]) -> list[Any]:
        """One step on arrays as `put` gives them; waits until all results are there."""
        with self._jax.enable_x64(True):
            return list(self._jax.block_until_ready(self._run(*arguments)))

    def get(self, results: Sequence[Any]) -> list[list[np.ndarray]]:
        """What every single device holds, `[device][result]`."""
        columns = [np.asarray(result) for result in results]
        return [[np.asarray(c[device]) for c in columns] for device in range(self.devices)]


def _exported(jax: Any, text: str, signature: Signature, platform: str) -> Any:
    """A `jax.export.Exported` of the signature that carries `text` in place of its own module."""

    def zeros(*_: Any) -> tuple[Any, ...]:
        return tuple(jax.numpy.zeros(r.shape, r.dtype) for r in signature.results)

    arguments = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in signature.arguments]
    jitted = jax.jit(zeros, keep_unused=True)
    stub = jax.export.export(jitted, platforms=[platform])(*arguments)
    return dataclasses.replace(
        stub,
        mlir_module_serialized=text.encode(),
        fun_name="imported",
        module_kept_var_idx=tuple(range(len(arguments))),
    )


def run_on_xla(
    text: str, mesh: Mesh, inputs: Sequence[Values], platform: str = "cpu"
) -> list[list[np.ndarray]]:
    """Runs a device-local module once: `inputs[device][argument]` in, `[device][result]` out."""
    executable = Executable(text, mesh.devices, platform, optimise=False)
    return executable.get(executable.call(executable.put(inputs)))


def compile_check(text: str, mesh: Mesh, platform: str = "cpu") -> None:
    """Raises `LoweringError` unless XLA compiles the device-local module for this mesh."""
    Executable(text, mesh.devices, platform, optimise=False)
