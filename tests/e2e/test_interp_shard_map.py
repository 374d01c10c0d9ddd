"""A `shard_map` of JAX in the interpreter against XLA on eight devices: every collective inside."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from partir.interp import run
from partir.partir_dialect.reader import read_module


def everything(a: jax.Array, b: jax.Array) -> tuple[jax.Array, ...]:
    """What one device does: each collective over one of the two axes."""
    index = jax.lax.axis_index("y").astype(jnp.float32)
    summed = jax.lax.psum(a @ b, "y")
    largest = jax.lax.pmax(b, "x")
    gathered = jax.lax.all_gather(a, "x", axis=0, tiled=True)
    shifted = jax.lax.ppermute(a, "y", [(k, (k + 1) % 4) for k in range(3)])
    exchanged = jax.lax.all_to_all(b, "x", 1, 0, tiled=True)
    scattered = jax.lax.psum_scatter(b, "y", scatter_dimension=1, tiled=True)
    total = (gathered.sum() + index + largest.sum()).reshape(1, 1)
    return summed, total, shifted, exchanged, scattered


def test_shard_map() -> None:
    spec = PartitionSpec
    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    function = jax.jit(
        jax.shard_map(
            everything,
            mesh=mesh,
            in_specs=(spec("x", "y"), spec("y", None)),
            out_specs=(
                spec("x", None),
                spec("x", "y"),
                spec("x", "y"),
                spec(("y", "x"), None),
                spec(None, "y"),
            ),
            check_vma=False,
        )
    )
    rng = np.random.default_rng(0)
    a = rng.standard_normal((8, 12)).astype(np.float32)
    b = rng.standard_normal((12, 8)).astype(np.float32)
    text = function.lower(a, b).as_text()
    assert "sdy.manual_computation" in text
    ours = run(read_module(text), [a, b])
    for mine, other in zip(ours, function(a, b), strict=True):
        np.testing.assert_allclose(mine, np.asarray(other), rtol=1e-5, atol=1e-5)
