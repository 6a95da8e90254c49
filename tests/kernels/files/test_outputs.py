"""Outputs: complete or unchanged, for any target; none is an input or another output."""

import fcntl
import gzip
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from simtbed import SimtbedError
from simtbed.kernels import files
from simtbed.kernels.files import DiskError, Outputs


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


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
    with pytest.raises(SimtbedError, match="there is no folder"):
        files.write(tmp_path / "no" / "folder", ["x"])
    assert names(tmp_path) == ["out"]


def test_several_files_are_written_together_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / name for name in "abc"]
    paths[0].write_text("before")
    replaced = []

    def replace(source: str, target: str) -> None:
        replaced.append(target)
        if len(replaced) == 3:
            raise OSError(5, "Input/output error")
        os.rename(source, target)

    monkeypatch.setattr(os, "replace", replace)
    to = Outputs({path.name: path for path in paths}).__enter__()
    for path in paths:
        to[path.name].write(b"after")
    with pytest.raises(DiskError, match="c: cannot be written: Input/output error"):
        to.__exit__(None, None, None)
    assert (names(tmp_path), paths[0].read_text()) == (["a"], "before")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_special_files_are_written_and_not_replaced(tmp_path: Path) -> None:
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()), daemon=True)
    reader.start()
    files.write(pipe, ["through\n"])
    reader.join(10)
    assert received == ["through\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == ["pipe"]


@pytest.mark.parametrize("link", ["/dev/fd/{}", "/proc/self/fd/{}", "link"])
def test_an_open_descriptor_is_written_to(link: str, tmp_path: Path) -> None:
    """A regular file behind an open descriptor is not replaced."""
    path = tmp_path / "open"
    with path.open("wb") as file:
        file.write(b"first ")
        file.flush()
        name = Path(link.format(file.fileno()))
        if link == "link":
            name = tmp_path / "link"
            name.symlink_to(f"/dev/fd/{file.fileno()}")
        inode = path.stat().st_ino
        files.write(name, ["then\n"])
    assert (path.read_text(), path.stat().st_ino) == ("first then\n", inode)


def test_standard_output_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    files.write(Path("-"), ["printed\n"])
    assert capsys.readouterr().out == "printed\n"


def test_an_error_leaves_standard_output_empty(capsys: pytest.CaptureFixture[str]) -> None:
    def half() -> Iterator[bytes]:
        yield b"half"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        files.write(Path("-"), half())
    assert capsys.readouterr().out == ""


def test_mode_and_links_are_preserved(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    real, link = tmp_path / "folder" / "real", tmp_path / "link"
    real.write_text("before")
    real.chmod(0o640)
    link.symlink_to("folder/real")
    files.write(link, ["after"])
    assert link.is_symlink() and (real.read_text(), stat.S_IMODE(real.stat().st_mode)) == ("after", 0o640)
    assert names(tmp_path / "folder") == ["real"]


def test_a_new_file_has_the_mode_of_any_other(tmp_path: Path) -> None:
    files.write(tmp_path / "ours", ["x"])
    (tmp_path / "other").write_text("x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_dangling_link_gets_its_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    files.write(tmp_path / "link", ["x"])
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "x"


@pytest.mark.parametrize("target", ["in", "./in", "folder/../in", "link", "hard link"])
def test_an_input_is_no_output(target: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("input")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("in")
    os.link(tmp_path / "in", tmp_path / "hard link")
    with pytest.raises(SimtbedError, match="--output and the input are the same file"):
        Outputs({"--output": tmp_path / target}, [None, tmp_path / "in"]).__enter__()
    assert (tmp_path / "in").read_text() == "input"


def test_two_outputs_are_two_files(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("new")
    for first, other in (("new", "new"), ("new", "link")):
        with pytest.raises(SimtbedError, match="--log and --output are the same file"):
            Outputs({"--output": tmp_path / first, "--log": tmp_path / other}).__enter__()
    for first, other in (("-", "-"), ("-", "/dev/fd/1"), ("/dev/fd/1", "/dev/stdout")):
        with pytest.raises(SimtbedError, match="--log and --output are the same file"):
            Outputs({"--output": Path(first), "--log": Path(other)}).__enter__()
    with pytest.raises(SimtbedError, match="standard input can be read once"):
        Outputs({}, [Path("-"), Path("-")]).__enter__()


def test_leftovers_of_ended_processes_are_removed(tmp_path: Path) -> None:
    dead, living, other, link = (
        tmp_path / f".{name}.unfinished" for name in ("out.0123", "out.4567", "other.0123", "out.89")
    )
    for path in (dead, living, other):
        path.write_text("half")
    link.symlink_to(other)
    with living.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        files.write(tmp_path / "out", ["x"])
    assert names(tmp_path) == sorted([living.name, other.name, link.name, "out"])


def test_the_unfinished_name_is_new_and_private(tmp_path: Path) -> None:
    (tmp_path / "out").touch(mode=0o600)
    unfinished_names = set()
    for _ in range(2):
        with Outputs({"out": tmp_path / "out"}) as to:
            to["out"].write(b"secret")
            (unfinished,) = tmp_path.glob(".out.*.unfinished")
            assert stat.S_IMODE(unfinished.stat().st_mode) == 0o600
            unfinished_names.add(unfinished.name)
    assert len(unfinished_names) == 2 and names(tmp_path) == ["out"]


def test_a_long_name_and_a_strange_one(tmp_path: Path) -> None:
    for name in ("x" * 255, "é" * 127, "a\nb\x1b[31m", "-"):
        files.write(tmp_path / name, ["x"])
        assert (tmp_path / name).read_text() == "x"
    with pytest.raises(SimtbedError) as error:
        files.write(tmp_path / "a\nb" / "out", ["x"])
    assert str(error.value).isprintable()


@pytest.mark.parametrize("end", ["zst", "xz", "bz2"])
def test_names_of_unsupported_compressions_are_refused(end: str, tmp_path: Path) -> None:
    with pytest.raises(SimtbedError, match=rf"out\.{end}: compressed outputs are written as BGZF"):
        files.write(tmp_path / f"out.{end}", ["x\n"])
    assert not list(tmp_path.iterdir())


def test_names_in_gz_are_packed(tmp_path: Path) -> None:
    files.write(tmp_path / "out.gz", ["x\n"] * 1000)
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()) == b"x\n" * 1000


def test_errors_of_other_files_are_not_renamed(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield (tmp_path / "missing").read_text()

    with pytest.raises(FileNotFoundError, match="missing"):
        files.write(tmp_path / "out", lines())
    assert not list(tmp_path.iterdir())
