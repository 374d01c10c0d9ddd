"""Whether the wheel works where there is no checkout.

Builds the wheel from a copy of the tracked files, installs it in a clean environment elsewhere, and
checks that `partir` is its only top-level name, that every listed package came along, and that the
commands run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def copy_sources(root: Path, target: Path) -> None:
    """Copies what git tracks, so that no left-over `build` folder gets into the wheel."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, names):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)


def wheel_faults(wheel: Path, packages: list[str]) -> list[str]:
    """What is wrong with the list of files in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    found = [] if tops == {"partir"} else [f"top-level names of the wheel: {sorted(tops)}"]
    for package in packages:
        if package.replace(".", "/") + "/__init__.py" not in names:
            found.append(f"left out of the wheel: {package}")
    return found


def main() -> int:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
        "packages"
    ]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        copy_sources(ROOT, work / "src")
        pip = [sys.executable, "-m", "pip", "-q"]
        subprocess.run([*pip, "wheel", "--no-deps", "-w", work, work / "src"], check=True)
        (wheel,) = work.glob("*.whl")
        if found := wheel_faults(wheel, packages):
            print("\n".join(found))
            return 1
        venv.create(work / "env", with_pip=True)
        bin_ = work / "env" / "bin"
        subprocess.run(
            [bin_ / "pip", "-q", "install", "-c", ROOT / "constraints.txt", wheel], check=True
        )
        elsewhere = work / "elsewhere"
        elsewhere.mkdir()
        for command in (["partir", "--help"], ["partir", "devices"], ["partir-opt", "--help"]):
            run = subprocess.run(
                [bin_ / command[0], *command[1:]],
                cwd=elsewhere,
                capture_output=True,
                text=True,
                check=False,
            )
            if run.returncode:
                print(f"{' '.join(command)}: exit {run.returncode}\n{run.stderr}")
                return 1
        names = "import partir.tactics, sys; sys.exit('tactics' in sys.modules)"
        return subprocess.run([bin_ / "python", "-c", names], cwd=elsewhere, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
