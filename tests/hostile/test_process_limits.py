"""Limits of the process: too little memory, no more threads or processes. A command ends with 3 and one line."""

import errno
import os
import resource
import subprocess
import sys
import threading
from typing import Any, NoReturn

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, SimtbedError, i32
from simtbed.reports.cli import app
from simtbed.reports.hardware.cases import results_of
from simtbed.reports.hardware.launches import matching
from simtbed.reports.targets import running
from simtbed.runtime import memory

from tests.table_checks import check_each


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__context__ = cause
    return error


def test_what_is_lacking() -> None:
    thread = RuntimeError("can't start new thread")
    unloaded = ImportError("libx.so: failed to map segment from shared object", name="numpy._core")

    def check(row: tuple[BaseException, str]) -> None:
        error, expected = row
        failure = app._failure(error)
        assert expected in failure.message and "\n" not in failure.message and failure.code == 3

    check_each(
        [
            (MemoryError(), "there is not enough memory"),
            (OSError(errno.ENOMEM, "Cannot allocate memory"), "there is not enough memory"),
            (caused(OSError("Could not find libllvmlite.so"), unloaded), "there is not enough memory"),
            (unloaded, "there is not enough memory"),
            (thread, "no other thread can be started"),
            (caused(RuntimeError("cannot join thread before it is started"), thread), "no other thread can be started"),
            (ModuleNotFoundError("No module named 'numpy'", name="numpy"), "numpy cannot be imported: No module"),
            (ImportError("dlopen:\n no", name="llvmlite"), "llvmlite cannot be imported: dlopen: no"),
        ],
        check,
    )
    assert app._lack(RuntimeError("other")) == app._lack(ImportError("x", name="simtbed.x")) == ""
    assert app._failure(caused(SimtbedError("mine"), MemoryError())).message == "simtbed: mine"


def test_an_address_space_below_that_of_a_launch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "address_space", lambda: 300 << 20)
    with pytest.raises(st.OutOfMemory, match="ulimit -v is 300 MiB, expected at least 640 MiB"):
        app.require_address_space()
    monkeypatch.setattr(memory, "address_space", lambda: 640 << 20)
    app.require_address_space()


@pytest.mark.slow
@pytest.mark.integration
def test_a_command_in_a_small_address_space() -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))

    command = [sys.executable, "-m", "simtbed", "sfs", "--example"]
    completed = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True)
    assert completed.returncode == 3 and completed.stdout == ""
    assert completed.stderr.startswith("simtbed: there is not enough memory") and completed.stderr.count("\n") == 1


def test_the_setting_for_threads_of_numpy_ends_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: list[tuple[str | None, str | None]] = []

    def run(arguments: Any, begin: Any) -> int:
        before = os.environ.get(app.BLAS_THREADS)
        begin()
        settings.append((before, os.environ.get(app.BLAS_THREADS)))
        return 0

    for name in ("prepare", "watch", "release", "require_address_space"):
        monkeypatch.setattr(app, name, lambda: None)
    monkeypatch.setattr(app, "run", run)
    monkeypatch.setattr(sys, "setswitchinterval", lambda seconds: None)
    for setting in (None, "4"):
        monkeypatch.delenv(app.BLAS_THREADS, raising=False)
        if setting:
            monkeypatch.setenv(app.BLAS_THREADS, setting)
        with pytest.raises(SystemExit):
            app.main()
    assert settings == [("1", None), ("4", "4")]


@st.kernel
def number(out: Global[i32]) -> None:
    out[st.block.x] = st.block.x


def _no_thread(thread: threading.Thread) -> NoReturn:
    raise RuntimeError("can't start new thread")


def test_a_launch_uses_the_threads_that_it_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMTBED_THREADS", "4")
    monkeypatch.setattr(threading.Thread, "start", _no_thread)
    result = st.launch(number, grid=300, block=1, args={"out": st.empty(300, i32)})
    assert np.array_equal(result.out, np.arange(300))


def test_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(st.UnavailableError, match=r"^no other process can be started"):
        running.run_process(["python"], {}, None)


def needs(argument: int) -> list[Any]:
    return [argument]


def nothing() -> None:
    pass


def wrong() -> list[int]:
    raise ValueError("two\nlines")


VALUE = 1


def test_cases_that_are_none() -> None:
    module = __name__
    names = ["", ":", ".:x", ".a:x", "a..b:x", "os:nope", "os:sep", "os:getpid", "a\nb:c", f"{module}:VALUE"]

    def check(name: str) -> None:
        with pytest.raises(SimtbedError, match="expected module:function"):
            list(results_of([name]))

    check_each([*names, f"{module}:needs", f"{module}:nothing", f"{module}:wrong"], check)
    with pytest.raises(SimtbedError, match="expected functions that give launches, not 1"):
        matching([1], "*")  # type: ignore[list-item]
