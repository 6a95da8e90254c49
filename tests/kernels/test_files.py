"""Whole files: what is read is all there, what is written is all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from simtbed.emulator import SimtbedError
from simtbed.kernels import files


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("before")

    def breaks() -> Iterator[str]:
        yield "half"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        files.write(path, breaks())
    assert path.read_text() == "before"
    files.write(path, ["after\n"])
    assert path.read_text() == "after\n"
    with pytest.raises(SimtbedError, match="cannot be written: No such file or directory"):
        files.write(tmp_path / "no" / "folder", ["x"])
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
