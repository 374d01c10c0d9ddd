"""Whether a function is longer than 80 lines or a file longer than 800 (CONTRIBUTING, "Size")."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTION_LINES = 80
FILE_LINES = 800


def faults(root: Path = ROOT) -> list[str]:
    """One line for each function or file that is too long."""
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    found: list[str] = []
    for name in tracked:
        if not (root / name).exists():
            continue
        text = (root / name).read_text()
        if (lines := text.count("\n")) > FILE_LINES:
            found.append(f"{name}: {lines} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    found.append(f"{name}:{node.lineno}: {node.name} has {lines} lines")
    return found


def main() -> int:
    found = faults()
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
