"""Signals at any moment of a command: its exit code names the signal, and there is no traceback."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from simtbed import interrupts
from simtbed.kernels import files
from simtbed.kernels.files import new_folder, signals
from simtbed.kernels.files.signals import Stopped
from simtbed.reports.cli import app
from simtbed.reports.targets import forwarding

from tests.hostile import moments
from tests.table_checks import each_row


@each_row(
    [
        (["/usr/bin/simtbed", "list"], ["python", "/usr/bin/simtbed", "list"], True),
        (["simtbed.exe"], ["python", "simtbed.exe"], True),
        (["-m", "list"], ["python", "-X", "dev", "-m", "simtbed", "list"], True),
        (["-m"], ["python", "-Im", "simtbed"], True),
        (["-m"], ["python", "-m", "pytest", "-m", "simtbed"], False),
        (["-m"], ["python", "-m", "simtbed.reports.hardware.profiled_process"], False),
        (["-c", "simtbed"], ["python", "-c", "import simtbed", "simtbed"], False),
        (["script.py", "-m", "simtbed"], ["python", "script.py", "-m", "simtbed"], False),
        ([], ["python"], False),
        ([""], ["python", ""], False),
    ]
)
def test_which_processes_are_the_command(
    row: tuple[list[str], list[str], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    argv, started_as, expected = row
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", started_as)
    assert interrupts.is_command() is expected


def test_a_signal_in_an_import_is_no_error_of_the_import() -> None:
    """The modules of other messages may be those that cannot be imported again."""

    def code(error: BaseException) -> int:
        return app._failure(error).code

    interrupted = ImportError("cannot load module more than once per process")
    interrupted.__context__ = Stopped(signal.SIGTERM)
    outer = RuntimeError()
    outer.__context__ = interrupted
    codes = [code(error) for error in (Stopped(signal.SIGHUP), KeyboardInterrupt(), interrupted, outer)]
    assert codes == [129, 130, 143, 143]
    assert app._signal(ImportError("x")) is None


def test_a_signal_that_python_cannot_raise_is_not_reported() -> None:
    reported: list[Any] = []
    for kind in (Stopped, ValueError):
        signals._report_unraisable(reported.append, SimpleNamespace(exc_type=kind))
    assert [event.exc_type for event in reported] == [ValueError]


def test_an_interrupted_project_does_not_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write, count, project = files.write, 0, tmp_path / "a" / "b" / "smooth"

    def interrupted(*arguments: Any) -> None:
        nonlocal count
        count += 1
        if count == 4:
            raise Stopped(signal.SIGTERM)
        write(*arguments)

    monkeypatch.setattr(files, "write", interrupted)
    assert app.run(["new", str(project)]) == 143
    assert count == 4 and list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    assert app.run(["new", str(project)]) == 0
    assert (project / "smooth.py").is_file() and [path.name for path in tmp_path.iterdir()] == ["a"]
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    capsys.readouterr()
    assert app.run(["new", str(tmp_path / "link")]) == app.run(["new", str(project / "smooth.py" / "inside")]) == 2
    refused = capsys.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in refused] == ["exists already", "Not a directory"]


def test_a_folder_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    folder = new_folder(tmp_path / "a")
    (folder.__enter__() / "file").touch()
    (tmp_path / "a").mkdir()
    with pytest.raises(FileExistsError):
        folder.__exit__(None, None, None)
    assert [path.name for path in tmp_path.rglob("*")] == ["a"]


def test_unfinished_folders_are_removed_after_the_grace_period(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "GRACE", 0.0)
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").touch()
    codes: list[int] = []
    for name in ("a", "c", "gone"):
        signals.register(str(tmp_path / name))

    receiving, sending = os.pipe()
    os.write(sending, bytes([signal.SIGTERM]))
    signals._exit_after_grace(receiving, codes.append)
    for name in ("a", "c", "gone"):
        signals.forget(str(tmp_path / name))
    os.close(receiving)
    os.close(sending)
    assert codes == [143] and list(tmp_path.iterdir()) == []


def test_a_program_receives_the_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGINT follows after a pause: its sender may have sent it to the program too."""
    monkeypatch.setattr(forwarding, "GRACE", 0.01)
    monkeypatch.setattr(forwarding, "_in_foreground", lambda: False)
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    reset = "".join(f"signal.signal({number:d}, signal.SIG_DFL); " for number in numbers)
    code = f"import signal; {reset}print('ready', flush=True); signal.pause()"
    before = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}  # nohup and & ignore some
    try:
        for number in numbers:
            with forwarding.forward_signals() as wait:
                process = subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE)
                assert process.stdout and process.stdout.readline() == b"ready\n"
                process.stdout.close()
                sender = threading.Timer(0.01, signal.pthread_kill, (threading.main_thread().ident, number))
                sender.start()
                assert wait(process) == -number
    finally:
        after = {signal.signal(number, handler) for number, handler in before.items()}
    assert after == {signal.SIG_DFL}


@pytest.mark.integration
def test_a_signal_in_the_first_imports_ends_a_command(tmp_path: Path) -> None:
    """tests/validation/stress/test_signal_moments.py sends it at any import."""
    assert moments.run(moments.FIRST, signal.SIGINT, ("list",), tmp_path) == (130, "")
