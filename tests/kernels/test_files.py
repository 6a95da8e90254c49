"""Whole files: what is read is all there, what is written is all or nothing."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from simtbed import SimtbedError
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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_is_no_file_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()), daemon=True)
    reader.start()
    files.write(pipe, ["through\n"])
    reader.join(10)
    assert received == ["through\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


def test_an_error_of_another_file_is_not_this_one_s(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield (tmp_path / "missing").read_text()

    with pytest.raises(FileNotFoundError, match="missing"):
        files.write(tmp_path / "out", lines())
    assert not list(tmp_path.iterdir())
