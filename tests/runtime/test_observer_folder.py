"""The observer folder: only this user's folders and files are used, other content is one line, and nothing waits."""

import os
import threading
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from simtbed import LaunchError, SimtbedError
from simtbed.reports.targets import stream
from simtbed.runtime import observer_folder, observing, plain_data
from simtbed.runtime.observer_folder import LaunchWriter, ObserverFolder, read_observer

from tests.table_checks import check_each

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "observer"
    path.mkdir(0o700)
    return path


def observed(path: object, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(observing, "current", None)
    monkeypatch.setenv(observing.OBSERVER, str(path))
    return observing.observers()


def test_records_are_read_once_and_in_order(folder: Path) -> None:
    with closing(ObserverFolder(folder)) as reader:
        first, second = LaunchWriter(str(folder)), LaunchWriter(str(folder))
        first.add("a")
        second.add("b")
        assert list(reader.values(str)) == ["a", "b"]
        first.add("c")
        with (folder / "launches.json").open("ab") as file:
            file.write(b'{"name":nu')  # by a killed process
        assert [list(reader.values(str)), list(reader.values(str))] == [["c"], []]
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]


def test_other_content_is_one_line(folder: Path) -> None:
    with closing(ObserverFolder(folder)) as reader:
        writer = LaunchWriter(str(folder))

        def check(content: bytes) -> None:
            with (folder / "launches.json").open("ab") as file:
                file.write(content)
            writer.add("a")
            with pytest.raises(SimtbedError, match=r"^[^\n]+launches.json: [^\n]+: only simtbed writes this file\Z"):
                list(reader.values(str))
            list(reader.values(Any))

        check_each([b"junk\n", b"\x80\x04.\n", b"{}\n", b"\n", b'{"name":null,"objects":[],"value":7}\n'], check)
        with (folder / "launches.json").open("ab") as file:
            file.write(b"junk")
        with pytest.raises(SimtbedError, match="the last line is not a record"):
            list(reader.values(str))


def test_a_record_beyond_the_limit_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer_folder, "_MAX_LINE", 100)
    with closing(ObserverFolder(folder)) as reader:
        LaunchWriter(str(folder)).add("a" * 100)
        with pytest.raises(SimtbedError, match=r"launches\.json"):
            list(reader.values(str))


def test_a_full_disk_is_one_line(folder: Path) -> None:
    with closing(ObserverFolder(folder)):
        writer = LaunchWriter(str(folder))
        writer._file = os.open("/dev/full", os.O_WRONLY)
        with pytest.raises(SimtbedError, match=r"^the launch cannot be recorded: .*: No space left on device\Z"):
            writer.add("a")
        os.close(writer._file)


def test_a_fork_has_a_lock_and_names_of_its_own(folder: Path) -> None:
    with closing(ObserverFolder(folder)) as reader:
        writer = LaunchWriter(str(folder))
        with writer._lock:  # another thread writes a record
            if not (child := os.fork()):
                writer.add("a")
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert list(reader.values(str)) == ["a"]


def _foreign(path: Path) -> None:
    os.chown(path, 12345, -1) if os.geteuid() == 0 else path.chmod(0o722)


def test_other_folders_and_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line names the folder. None is executed, waits, or is written."""

    def own(name: str) -> Path:
        path = tmp_path / name
        path.mkdir(0o700)
        with closing(ObserverFolder(path)) as created:
            created.write_observer("tests", {"archs": (), "fields": {}})
        return path

    assert len(observed(own("valid"), monkeypatch)) == 1  # type: ignore[arg-type]
    fifo, foreign, shared, link = tmp_path / "fifo", own("foreign"), own("shared"), tmp_path / "link"
    os.mkfifo(fifo)
    _foreign(foreign)
    shared.chmod(0o755)
    link.symlink_to(own("target"))
    inside = {}
    no_files = ("link", "fifo", "folder", "device")
    for name in (*no_files, "foreign", "shared", "pickle", "junk", "deep", "options", "observer", "large"):
        inside[name] = own(f"file {name}") / "observer.json"
        if name in no_files:
            inside[name].unlink()
    inside["link"].symlink_to(own("other") / "observer.json")
    inside["device"].symlink_to("/dev/zero")
    os.mkfifo(inside["fifo"])
    inside["folder"].mkdir(0o700)
    _foreign(inside["foreign"])
    inside["shared"].chmod(0o644)
    inside["pickle"].write_bytes(b"cos\nsystem\n(S'echo'\ntR.")
    inside["junk"].write_text('{"observer": "tests", "options": [1]}')
    inside["deep"].write_text("[" * 100_000)
    inside["observer"].write_text(
        '{"observer": "os", "options": ["{\\"name\\":null,\\"objects\\":[],\\"value\\":[\\"dict\\"]}"]}'
    )
    inside["options"].write_text(
        '{"observer": "tests", "options": ["{\\"name\\":null,\\"objects\\":[],\\"value\\":[\\"dict\\",\\"a\\",1]}"]}'
    )
    inside["large"].write_bytes(bytes((1 << 24) + 1))
    paths = [Path("/dev/zero"), fifo, foreign, shared, link, *(path.parent for path in inside.values())]

    def check(path: Path) -> None:
        with pytest.raises(LaunchError) as refused:
            observed(path, monkeypatch)
        text = str(refused.value)
        assert text.startswith(f"SIMTBED_OBSERVER: {path}: ") and "\n" not in text and len(text) < 400 + len(str(path))

    check_each(paths, check)


def test_names_in_a_folder_exist() -> None:
    for package in plain_data._PACKAGES:
        assert import_module(f"simtbed.{package}")
    for name, module in stream.OBSERVERS.items():
        assert getattr(import_module(module), name).__name__ == name
    for module in observing._CREATORS.values():
        assert callable(import_module(module).observer_of)


def test_a_removed_folder_means_no_observer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert observed(folder, monkeypatch) == () == observed(folder / "gone", monkeypatch)


def test_a_file_of_launches_that_others_own_is_not_written(folder: Path) -> None:
    for plant in (lambda path: path.symlink_to(folder / "target"), os.mkfifo, _planted):
        plant(folder / "launches.json")
        with pytest.raises(OSError, match=r"symbolic|No such device|other users"):
            LaunchWriter(str(folder))
        (folder / "launches.json").unlink()
    (folder / "launches.json").symlink_to(folder / "target")
    with pytest.raises(FileExistsError):
        ObserverFolder(folder)


def _planted(path: Path) -> None:
    path.touch()
    path.chmod(0o666)


def test_threads_share_one_observer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(ObserverFolder(folder)) as created:
        created.write_observer("tests", {"archs": (), "fields": {}})
    assert read_observer(str(folder)) == ("tests", {"archs": (), "fields": {}})
    monkeypatch.setattr(observing, "current", None)
    monkeypatch.setenv(observing.OBSERVER, str(folder))
    results: list[object] = []
    threads = [threading.Thread(target=lambda: results.append(observing.observers())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result is results[0] for result in results)
