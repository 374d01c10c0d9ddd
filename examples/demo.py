"""The demonstration: partitions the transformer step of this folder and shows that it stays equal.

Needs no JAX. Does what this command line does:

    partir partition examples/transformer_step.mlir --tactics examples/zero3.tactic --verify
"""

from __future__ import annotations

import sys
from pathlib import Path

from partir.cli.main import main

FOLDER = Path(__file__).resolve().parent

if __name__ == "__main__":
    program = FOLDER / "transformer_step.mlir"
    script = FOLDER / "zero3.tactic"
    print(f"partir partition {program.name} --tactics {script.name} --verify\n")
    print(script.read_text(), flush=True)
    sys.exit(main(["partition", str(program), "--tactics", str(script), "--verify"]))
