"""Is everything installed, and only under `partir`?"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import pytest

Script = Callable[[str], ModuleType]

ROOT = Path(__file__).resolve().parents[2]
TABLE = """\
[tool.setuptools]
packages = ["partir", "partir.rooms"]
[tool.setuptools.package-dir]
partir = "src/partir"
"partir.rooms" = "rooms"
[tool.setuptools.package-data]
"partir.rooms" = ["*.txt"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one room, which is packaged as it should be."""
    (tmp_path / "pyproject.toml").write_text(TABLE)
    for folder in ("src/partir", "rooms"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "__init__.py").write_text("")
    (tmp_path / "rooms" / "words.txt").write_text("")
    return tmp_path


def test_packages_match_the_folders(script: Script) -> None:
    assert script("check_packages").faults() == []


def test_a_good_project_has_no_faults(project: Path, script: Script) -> None:
    assert script("check_packages").faults(project) == []


def test_a_forgotten_subpackage_is_found(project: Path, script: Script) -> None:
    (project / "rooms" / "inner").mkdir()
    (project / "rooms" / "inner" / "__init__.py").write_text("")
    faults = script("check_packages").faults(project)
    assert faults == ["not in packages and package-dir: partir.rooms.inner"]


def test_a_folder_without_init_is_found(project: Path, script: Script) -> None:
    (project / "rooms" / "inner").mkdir()
    (project / "rooms" / "inner" / "code.py").write_text("")
    assert script("check_packages").faults(project) == ["no __init__.py in rooms/inner"]


def test_a_data_file_that_is_not_packaged_is_found(project: Path, script: Script) -> None:
    (project / "rooms" / "model.toml").write_text("")
    assert script("check_packages").faults(project) == [
        "not named by package-data: rooms/model.toml"
    ]


def test_a_listed_package_without_folder_is_found(project: Path, script: Script) -> None:
    text = TABLE.replace('"partir.rooms"]', '"partir.rooms", "partir.gone"]', 1)
    (project / "pyproject.toml").write_text(text)
    assert script("check_packages").faults(project) == [
        "in packages but not in package-dir: partir.gone"
    ]


def test_every_listed_package_imports(script: Script) -> None:
    for name in script("make_links").package_folders():
        assert importlib.import_module(name).__name__ == name


def test_rooms_are_no_top_level_modules() -> None:
    code = (
        "import partir.tactics, partir.passes, sys; print({'tactics', 'passes'} & set(sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT.parent, capture_output=True, text=True, check=True
    )
    assert run.stdout == "set()\n"


def test_data_files_are_found_where_they_are_installed() -> None:
    assert "bf16" in (files("partir.cost.devices") / "tpu_v5e.toml").read_text()
    assert "start:" in (files("partir.tactics") / "tactic.lark").read_text()


def test_wheel_check_finds_a_second_top_level_name(tmp_path: Path, script: Script) -> None:
    import zipfile

    wheel = tmp_path / "p.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("partir/__init__.py", "passes/__init__.py", "p-1.dist-info/METADATA"):
            archive.writestr(name, "")
    check = script("check_wheel")
    assert check.wheel_faults(wheel, ["partir"]) == [
        "top-level names of the wheel: ['partir', 'passes']"
    ]
    assert "left out of the wheel: partir.cli" in check.wheel_faults(wheel, ["partir.cli"])
