"""Every real program in NumPy against XLA: as near to a run in doubles as XLA's own rounding is."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partir.interp import run
from partir.interp.compare import bounds, compare, not_finite
from partir.interp.inputs import draw_inputs
from partir.partir_dialect.reader import read_module

Array = np.ndarray[Any, np.dtype[Any]]
CHILD = Path(__file__).resolve().parents[1] / "e2e" / "interp_child.py"
NOT_RUN = {
    "t5b_train",
    "t_train_L32",
}  # too large to run here; t_train_L4 is the same program, smaller
PROGRAMS = """
gns_train it_decode_L2 it_decode_eos_L2 it_decode_mq_L2 llama_train_L2 llama_train_scan_L8 mlp_train
moe_train_L2 op_bitcast op_branches op_calls op_cholesky_solve op_complex_numbers
op_concat_pad_reverse_roll op_conv_1d_3d op_conv_dilated op_conv_grouped op_conv_grouped_grad
op_conv_strided op_cumsum_window op_cumulative op_custom_call_qr op_dot_variants op_dynamic_slices
op_elementwise op_fft op_float8 op_gather_batched op_gather_rows op_gather_windows
op_int4_dequantise op_integers op_max_pool_grad op_nested_while op_pooling op_random_bits
op_reduce_precision op_reductions op_scan_grad op_scatter_add op_scatter_batched op_scatter_set
op_shapes op_sorting op_top_k op_uneven_conv_gather op_uneven_dense op_uneven_scatter_sort
op_variadic_reduce resnet_infer rng_dropout_train t_train_L2 t_train_L2_gather t_train_L4 unet_train
""".split()


@pytest.fixture(scope="module")
def xla() -> Iterator[Callable[[str, Sequence[Array]], list[Array]]]:
    """Runs a text on XLA in a child process."""
    child = subprocess.Popen(
        [sys.executable, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )

    def ask(text: str, inputs: Sequence[Array]) -> list[Array]:
        assert child.stdin is not None and child.stdout is not None
        pickle.dump(("xla", text, tuple(inputs)), child.stdin)
        child.stdin.flush()
        answer = pickle.load(child.stdout)
        assert not isinstance(answer, str), answer
        return answer

    yield ask
    child.communicate()


def test_every_program_is_listed(programs: Path) -> None:
    names = {path.stem for path in programs.glob("*.json")} - {"baseline"}
    assert names == {*PROGRAMS, *NOT_RUN}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_agrees_with_xla(
    name: str, programs: Path, xla: Callable[[str, Sequence[Array]], list[Array]]
) -> None:
    text = (programs / f"{name}.mlir").read_text()
    module = read_module(text, name)
    inputs = draw_inputs(module)
    ours, exact, theirs = (
        run(module, inputs),
        run(module, inputs, reference=True),
        xla(text, inputs),
    )
    assert len(ours) == len(theirs)
    limits = bounds(exact, theirs)
    if "bf16" in text:  # XLA keeps bf16 values wide inside its fusions, and is less wrong by that
        loose = bounds(exact, theirs, rtol=1e-3)
        limits = [
            None if a is None or b is None else np.maximum(a, b)
            for a, b in zip(limits, loose, strict=True)
        ]
    for index, (mine, reference, other) in enumerate(zip(ours, exact, theirs, strict=True)):
        assert mine.dtype == other.dtype
        assert not_finite(mine) is None
        mismatch = compare(reference, other, mine, bound=limits[index])
        assert mismatch is None, f"result {index}: {mismatch}"
