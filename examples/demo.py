"""The demonstration: partitions the transformer step of this folder and shows that it stays equal.

Needs no JAX. Does what this command line does:

    partir partition examples/transformer_step.mlir --tactics examples/zero3.tactic --verify
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from partir.cli.main import main

PROGRAM, SCRIPT = "examples/transformer_step.mlir", "examples/zero3.tactic"

if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parent.parent)
    print(f"partir partition {PROGRAM} --tactics {SCRIPT} --verify\n")
    print(Path(SCRIPT).read_text(), flush=True)
    sys.exit(main(["partition", PROGRAM, "--tactics", SCRIPT, "--verify"]))
