"""Whether the README shows what its commands print: `python scripts/readme.py [--update]`.

Runs every `$ command` of its console blocks in a folder of its own with the examples beside it, and
the Python block; compares, or with `--update` writes, what they print.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_CONSOLE = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.S)
_PYTHON = re.compile(r"(?<=```python\n)(.*?)(```\n\nprints\n\n```\n)(.*?)(?=```)", re.S)

Runner = Callable[[list[str]], str]


def run_in(folder: Path) -> Runner:
    """Runs a command in `folder`, with this interpreter's programs first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(command: list[str]) -> str:
        return subprocess.run(
            command,
            cwd=folder,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    return run


def renewed(text: str, run: Runner) -> str:
    """The text with the output of its commands as it is now."""

    def console(match: re.Match[str]) -> str:
        commands = [line for line in match[0].splitlines() if line.startswith("$ ")]
        return "".join(f"{c}\n{_tidy(run(['bash', '-c', c[2:]]))}" for c in commands)

    def python(match: re.Match[str]) -> str:
        return match[1] + match[2] + _tidy(run([sys.executable, "-c", match[1]]))

    return _PYTHON.sub(python, _CONSOLE.sub(console, text))


def _tidy(output: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in output.splitlines())


def main() -> int:
    readme = ROOT / "README.md"
    text = readme.read_text()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        now = renewed(text, run_in(Path(folder)))
    if "--update" in sys.argv:
        readme.write_text(now)
    elif now != text:
        print("README.md does not show what its commands print; --update mends it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
