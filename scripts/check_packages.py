"""Whether `packages` in pyproject.toml lists every folder of the project that holds Python or data.

setuptools leaves a forgotten sub-package out of the wheel without a word. This compares, both ways,
the listed packages with the folders that have an `__init__.py`, checks that each sub-folder of a
room has one, and that each data file below a room is named by `package-data`.
"""

from __future__ import annotations

import fnmatch
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def faults(root: Path = ROOT) -> list[str]:
    """One line for each package that is missing, superfluous or has no folder."""
    setup: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text())["tool"][
        "setuptools"
    ]
    folders: dict[str, str] = setup["package-dir"]
    listed: set[str] = set(setup["packages"])
    found = [f"in packages but not in package-dir: {p}" for p in listed - set(folders)]
    found += [f"in package-dir but not in packages: {p}" for p in set(folders) - listed]
    rooms = {name: Path(folder) for name, folder in folders.items() if name.count(".") <= 1}
    for name, room in rooms.items():
        for folder in _source_folders(root / room):
            inner = folder.relative_to(root / room).parts
            package = ".".join((name, *inner))
            if not (folder / "__init__.py").exists():
                found.append(f"no __init__.py in {folder.relative_to(root)}")
            elif folders.get(package) != (room.joinpath(*inner)).as_posix():
                found.append(f"not in packages and package-dir: {package}")
            patterns: list[str] = setup["package-data"].get(package, [])
            found += [
                f"not named by package-data: {file.relative_to(root)}"
                for file in sorted(folder.iterdir())
                if _is_data(file) and not any(fnmatch.fnmatch(file.name, p) for p in patterns)
            ]
    return sorted(found)


def _source_folders(room: Path) -> list[Path]:
    inner = [p for p in room.rglob("*") if p.is_dir() and "__pycache__" not in p.parts]
    return [room, *sorted(inner)]


def _is_data(file: Path) -> bool:
    return file.is_file() and file.suffix not in {".py", ".pyc", ".md"}


def main() -> int:
    found = faults()
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
