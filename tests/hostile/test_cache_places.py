"""Folders of the disk cache: only a folder without write access of other users is used, and none is required."""

import os
import sys
from pathlib import Path

import pytest
from simtbed import disk_cache

NAME = "0" * 64 + ".o"
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to make caches in; nothing of this process's environment names one."""
    for name in ("SIMTBED_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir(mode=0o700)
    return tmp_path


def keeps(folder: Path | None) -> bool:
    """Whether entries are kept in a folder."""
    disk_cache.save(NAME, b"content")
    assert disk_cache.cache_folder().folder == folder
    return disk_cache.load(NAME, bytes) == b"content"


# ------------------------------------------------------------------ which folder
@pytest.mark.skipif(sys.platform != "linux", reason="the folders of Linux")
def test_the_usual_folders_in_their_order(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert keeps(base / "home/.cache/simtbed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(base / "xdg"))
    assert keeps(base / "xdg/simtbed")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert keeps(base / "home/.cache/simtbed")
    monkeypatch.setenv("SIMTBED_CACHE", str(base / "asked"))
    assert keeps(base / "asked")


@pytest.mark.parametrize("home", ["relative", "/dev/null", "/proc"])
def test_without_a_home_temporary_files_are_there(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], home: str
) -> None:
    monkeypatch.setenv("HOME", home)
    assert keeps(base / "tmp" / f"simtbed-{os.geteuid()}")
    monkeypatch.setenv("TMPDIR", "/dev/null")
    assert not keeps(None)
    assert capsys.readouterr() == ("", "")


def test_folders_are_made_for_their_user_alone(base: Path) -> None:
    old = os.umask(0)
    try:
        assert keeps(base / "home/.cache/simtbed")
    finally:
        os.umask(old)
    created = [base / "home", base / "home/.cache", base / "home/.cache/simtbed"]
    assert [path.stat().st_mode & 0o777 for path in created] == [0o700] * 3
    assert {path.stat().st_mode & 0o777 for path in created[-1].iterdir()} == {0o600}


# ------------------------------------------------------------------ refused
def _request_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(parents=True)
    monkeypatch.setenv("SIMTBED_CACHE", str(folder))


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o707, 0o720, 0o702])
def test_a_folder_that_others_can_write_is_refused_in_one_line(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mode: int
) -> None:
    _request_folder(base / "cache", monkeypatch)
    (base / "cache").chmod(mode)
    assert not keeps(None) and not list((base / "cache").iterdir())
    message = (
        f"simtbed: warning: compiled code is not kept: {str(base / 'cache')!r} is not used: "
        f"Other users can write it (mode {mode:o}): {str(base / 'cache')!r} (SIMTBED_CACHE)\n"
    )
    assert capsys.readouterr() == ("", message)
    assert not keeps(None) and capsys.readouterr().err == ""
    assert disk_cache.cache_folder().refused == (
        message.removeprefix("simtbed: warning: compiled code is not kept: ")[:-17],
    )


@pytest.mark.parametrize(("mode", "used"), [(0o777, False), (0o775, False), (0o1777, True), (0o755, True)])
def test_no_other_user_can_move_the_folder(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mode: int, used: bool
) -> None:
    _request_folder(base / "above/between/cache", monkeypatch)
    (base / "above").chmod(mode)
    assert keeps(base / "above/between/cache" if used else None) is used
    assert (capsys.readouterr().err == "") is used


@ROOT
@pytest.mark.parametrize("level", ["above", "above/between", "above/between/cache"])
def test_a_folder_of_another_user_is_refused_even_to_root(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], level: str
) -> None:
    _request_folder(base / "above/between/cache", monkeypatch)
    os.chown(base / level, 65534, 65534)
    assert not keeps(None)
    assert f"Another user owns it: {str(base / level)!r}" in capsys.readouterr().err


@ROOT
def test_the_home_of_another_user_is_not_written(base: Path) -> None:
    """As sudo leaves HOME to root."""
    (base / "home").mkdir()
    os.chown(base / "home", 65534, 65534)
    assert keeps(base / "tmp" / "simtbed-0")
    assert not list((base / "home").iterdir())


def test_a_file_in_place_of_the_folder_is_an_error(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (base / "fi\x1ble").write_text("an obstacle")
    monkeypatch.setenv("SIMTBED_CACHE", str(base / "fi\x1ble"))
    assert not keeps(None)
    message = capsys.readouterr().err
    assert "Not a directory" in message and "\x1b" not in message and message.count("\n") == 1


# ------------------------------------------------------------------ links
def test_a_link_to_a_private_folder_is_followed(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As from a small home to a large disk."""
    (base / "large").mkdir(mode=0o700)
    (base / "home").mkdir()
    (base / "home/.cache").symlink_to(base / "large")
    assert keeps(base / "large/simtbed")


def test_a_link_to_a_folder_that_others_can_write_is_refused(base: Path) -> None:
    (base / "shared/simtbed").mkdir(parents=True)
    (base / "shared").chmod(0o777)
    (base / "home").mkdir()
    (base / "home/.cache").symlink_to(base / "shared")
    assert keeps(base / "tmp" / f"simtbed-{os.geteuid()}")
    assert not list((base / "shared/simtbed").iterdir())


@ROOT
@pytest.mark.parametrize("chain", [False, True])
def test_a_link_of_another_user_is_not_followed(base: Path, chain: bool) -> None:
    """In a folder for temporary files another user may have created it, to redirect writes."""
    (base / "private").mkdir(mode=0o700)
    (base / "tmp").chmod(0o1777)
    planted = base / "tmp" / ("planted" if chain else "simtbed-0")
    planted.symlink_to(base / "private")
    os.lchown(planted, 65534, 65534)
    if chain:
        (base / "tmp/simtbed-0").symlink_to("planted/..//planted/inside")
    (base / "home").write_text("an obstacle")
    assert not keeps(None)
    assert not list((base / "private").iterdir())


@pytest.mark.parametrize("target", [".", "..", "../tmp", "/tmp"])
def test_a_link_back_to_where_others_write_is_refused(base: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    (base / "tmp").chmod(0o1777)
    base.chmod(0o1777)
    (base / "tmp/cache").symlink_to(target)
    monkeypatch.setenv("SIMTBED_CACHE", str(base / "tmp/cache"))
    assert not keeps(None)


def test_links_may_lead_up(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (base / "deep/er").mkdir(parents=True)
    (base / "link").symlink_to(base / "deep/er")
    monkeypatch.setenv("SIMTBED_CACHE", f"{base}/link/../cache/./inside")
    assert keeps(base / "deep/cache/inside")
    monkeypatch.chdir(base / "deep")
    monkeypatch.setenv("SIMTBED_CACHE", "../link/here")
    assert keeps(base / "deep/er/here")


def test_a_circle_of_links_is_refused(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (base / "circle").symlink_to("circle")
    monkeypatch.setenv("SIMTBED_CACHE", str(base / "circle"))
    assert not keeps(None)


def test_links_planted_for_what_is_written_are_replaced(base: Path) -> None:
    """Neither an entry nor the key is written through a link."""
    folder, precious = base / "home/.cache/simtbed", base / "precious"
    folder.mkdir(parents=True, mode=0o700)
    precious.write_text("precious")
    for name in (NAME, "key"):
        (folder / name).symlink_to(precious)
    assert keeps(folder)
    assert precious.read_text() == "precious" and not (folder / NAME).is_symlink() and not (folder / "key").is_symlink()
