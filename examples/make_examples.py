"""Writes the example programs of this folder: `python examples/make_examples.py` (needs JAX).

Each is one training step as JAX lowers it: parameters, optimizer state and a batch in, new
parameters, new state and the loss out, with the old ones donated. Every argument carries its path,
as in `loc("params['block_0']['wq']")`; from it come the names that tactics use.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

FOLDER = Path(__file__).resolve().parent

BLOCKS, WIDTH, HEADS, HIDDEN, VOCABULARY, LENGTH, BATCH = 2, 64, 4, 128, 256, 16, 16
MLP_SIZES, MLP_BATCH = (32, 128, 128, 8), 64

Tree = Any
Shape = jax.ShapeDtypeStruct
Loss = Callable[[Tree, Tree], jax.Array]


def floats(*shape: int) -> Shape:
    return Shape(shape, jnp.float32)


def integers(*shape: int) -> Shape:
    return Shape(shape, jnp.int32)


def transformer_parameters() -> Tree:
    """Shapes of the weights of a decoder with learned positions and a tied embedding."""
    block = {
        "norm_1": floats(WIDTH),
        "wq": floats(WIDTH, HEADS, WIDTH // HEADS),
        "wk": floats(WIDTH, HEADS, WIDTH // HEADS),
        "wv": floats(WIDTH, HEADS, WIDTH // HEADS),
        "wo": floats(HEADS, WIDTH // HEADS, WIDTH),
        "norm_2": floats(WIDTH),
        "w_in": floats(WIDTH, HIDDEN),
        "w_out": floats(HIDDEN, WIDTH),
    }
    tables = {"embedding": floats(VOCABULARY, WIDTH), "positions": floats(LENGTH, WIDTH)}
    return tables | {f"block_{i}": block for i in range(BLOCKS)}


def rms_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def attention(p: Tree, x: jax.Array) -> jax.Array:
    """Causal self-attention; x is (batch, position, width)."""
    q, k, v = (jnp.einsum("btd,dhk->bthk", x, p[name]) for name in ("wq", "wk", "wv"))
    scores = jnp.einsum("bthk,bshk->bhts", q, k) * (WIDTH // HEADS) ** -0.5
    seen = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
    return jnp.einsum("bhts,bshk,hkd->btd", weights, v, p["wo"])


def transformer_loss(params: Tree, batch: Tree) -> jax.Array:
    """Mean cross-entropy of the next token."""
    with jax.named_scope("embed"):
        x = params["embedding"][batch["tokens"]] + params["positions"]
    for i in range(BLOCKS):
        p = params[f"block_{i}"]
        with jax.named_scope(f"block_{i}"):
            x = x + attention(p, rms_norm(x, p["norm_1"]))
            hidden = jax.nn.gelu(rms_norm(x, p["norm_2"]) @ p["w_in"])
            x = x + hidden @ p["w_out"]
    with jax.named_scope("loss"):
        scores = jax.nn.log_softmax(x @ params["embedding"].T)
        picked = jnp.sum(scores * jax.nn.one_hot(batch["targets"], VOCABULARY), axis=-1)
        return -jnp.mean(picked)


def mlp_parameters() -> Tree:
    """Shapes of the weights and biases of a perceptron with two hidden layers."""
    pairs = list(itertools.pairwise(MLP_SIZES))
    return {f"w{i}": floats(*pair) for i, pair in enumerate(pairs)} | {
        f"b{i}": floats(size) for i, (_, size) in enumerate(pairs)
    }


def mlp_loss(params: Tree, batch: Tree) -> jax.Array:
    """Mean squared error."""
    x = batch["x"]
    for i in range(len(MLP_SIZES) - 1):
        x = x @ params[f"w{i}"] + params[f"b{i}"]
        x = x if i == len(MLP_SIZES) - 2 else jnp.tanh(x)
    return jnp.mean((x - batch["y"]) ** 2)


def adam_step(loss: Loss) -> Callable[[Tree, Tree, Tree], tuple[Tree, Tree, jax.Array]]:
    """One step of Adam as a function of parameters, state and batch."""

    def train_step(params: Tree, opt: Tree, batch: Tree) -> tuple[Tree, Tree, jax.Array]:
        value, gradients = jax.value_and_grad(loss)(params, batch)
        with jax.named_scope("adam"):
            step = opt["step"] + 1
            count = step.astype(jnp.float32)
            first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, opt["mu"], gradients)
            second = jax.tree.map(lambda n, g: 0.99 * n + 0.01 * g * g, opt["nu"], gradients)

            def move(p: jax.Array, m: jax.Array, n: jax.Array) -> jax.Array:
                root = jnp.sqrt(n / (1 - 0.99**count))
                return p - 1e-3 * m / (1 - 0.9**count) / (root + 1e-8)

            moved = jax.tree.map(move, params, first, second)
        return moved, {"mu": first, "nu": second, "step": step}, value

    return train_step


def sgd_step(loss: Loss) -> Callable[[Tree, Tree], tuple[Tree, jax.Array]]:
    """One step of plain gradient descent as a function of parameters and batch."""

    def train_step(params: Tree, batch: Tree) -> tuple[Tree, jax.Array]:
        value, gradients = jax.value_and_grad(loss)(params, batch)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients), value

    return train_step


def texts() -> dict[str, str]:
    """The text of each example by the stem of its file."""
    # One frame a location, relative to the project: the same text on every machine.
    jax.config.update("jax_traceback_in_locations_limit", 1)
    jax.config.update(
        "jax_hlo_source_file_canonicalization_regex", re.escape(f"{FOLDER.parent.as_posix()}/")
    )
    params = transformer_parameters()
    state = {"mu": params, "nu": params, "step": integers()}
    tokens = {"tokens": integers(BATCH, LENGTH), "targets": integers(BATCH, LENGTH)}
    step = jax.jit(adam_step(transformer_loss), donate_argnums=(0, 1), keep_unused=True)
    transformer = step.lower(params, state, tokens)
    points = {"x": floats(MLP_BATCH, MLP_SIZES[0]), "y": floats(MLP_BATCH, MLP_SIZES[-1])}
    step = jax.jit(sgd_step(mlp_loss), donate_argnums=(0,), keep_unused=True)
    mlp = step.lower(mlp_parameters(), points)
    return {
        "transformer_step": transformer.as_text(debug_info=True),
        "mlp_step": mlp.as_text(debug_info=True),
    }


if __name__ == "__main__":
    for stem, text in texts().items():
        (FOLDER / f"{stem}.mlir").write_text(text)
