"""Is an output whole or not there at all?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from partir.cli.output import OutputFile, output_files
from partir.partir_dialect.errors import PartirError


def test_a_file_appears_whole_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "out.mlir"
    with output_files(str(target), None) as (file, absent):
        assert file is not None and absent is None
        file.write("text")
        assert not target.exists()
    assert target.read_text() == "text\n"
    assert [p.name for p in tmp_path.iterdir()] == ["out.mlir"]


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "out.mlir"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError), output_files(str(target)) as (file,):
        assert file is not None
        file.write("new")
        raise ZeroDivisionError
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.mlir"]


def test_all_outputs_or_none(tmp_path: Path) -> None:
    first = tmp_path / "a"
    with (
        pytest.raises(PartirError, match=r"cannot write the output: .*No such file"),
        output_files(str(first), str(tmp_path / "gone" / "b")),
    ):
        raise AssertionError("not reached")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_output(tmp_path: Path) -> None:
    with pytest.raises(PartirError, match="Is a directory"):
        OutputFile(str(tmp_path))


def test_what_is_no_file_is_written_in_place() -> None:
    file = OutputFile("/dev/null")
    file.write("text")
    file.finish()
    assert not Path("/dev/null").is_file()


def test_a_full_disk_is_said() -> None:
    file = OutputFile("/dev/full")
    file.write("text")
    with pytest.raises(PartirError, match="No space left"):
        file.finish()


def test_a_link_stays_a_link_and_modes_stay(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    file = OutputFile(str(link))
    file.write("new")
    file.finish()
    assert link.is_symlink() and target.read_text() == "new\n"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_the_modes_of_any_new_file(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        file = OutputFile(str(tmp_path / "new"))
        file.write("text")
        file.finish()
    finally:
        os.umask(mask)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with output_files("-") as (file,):
        assert file is not None
        file.write("text")
    assert capsys.readouterr().out == "text\n"
