"""Makes `.links/partir`, the tree in which the folders look as they do once installed.

pyright does not read setuptools' package-dir; it finds `partir.passes` through this link tree,
`.links/partir/passes` → `passes`. The tree is git-ignored and can be made again at any time.
"""

from __future__ import annotations

import os
import shutil
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def package_folders(root: Path = ROOT) -> dict[str, Path]:
    """Every package that setuptools installs and its folder, relative to the root."""
    setup = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]
    return {name: Path(folder) for name, folder in setup["package-dir"].items()}


def make_links(root: Path = ROOT) -> None:
    """Makes the tree anew: the public face's files, and one link for each room."""
    links = root / ".links"
    shutil.rmtree(links, ignore_errors=True)
    face = links / "partir"
    face.mkdir(parents=True)
    for name, folder in package_folders(root).items():
        if name == "partir":
            for file in sorted((root / folder).iterdir()):
                if file.name != "__pycache__":
                    _link(face / file.name, file)
        elif name.count(".") == 1:
            _link(face / name.partition(".")[2], root / folder)


def _link(link: Path, target: Path) -> None:
    link.symlink_to(os.path.relpath(target, link.parent), target_is_directory=target.is_dir())


if __name__ == "__main__":
    make_links()
