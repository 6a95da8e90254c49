"""A fork while other threads launch kernels: the child waits for no lock of a thread that it does not have."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import simtbed as st
from llvmlite.binding import ffi
from simtbed import Global, forking, i32
from simtbed.llvm import compiler
from simtbed.runtime import observing

from tests.table_checks import each_row

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def child(function: Callable[[], bool]) -> bool:
    """Return the result of a function in a child process; False if it waits or fails."""
    if not (process := os.fork()):
        threading.Timer(5, os._exit, (2,)).start()
        code = 3
        try:
            code = int(not function())
        finally:
            os._exit(code)
    return os.waitpid(process, 0)[1] == 0


@contextmanager
def in_thread(work: Callable[[Callable[[], None]], None]) -> Iterator[None]:
    """Run `work` in a thread until it has called its argument, which then lasts for a moment."""
    inside = threading.Event()

    def pause() -> None:
        inside.set()
        time.sleep(0.05)

    thread = threading.Thread(target=work, args=(pause,))
    thread.start()
    inside.wait()
    yield
    thread.join()


@each_row([compiler._LOCK, ffi.lib._lock._lock, observing._LOCK])
def test_locks_are_free_in_the_child(lock: threading.RLock) -> None:
    def hold(pause: Callable[[], None]) -> None:
        with lock:
            pause()

    with in_thread(hold):
        assert child(lambda: lock.acquire(timeout=1))
    assert lock.acquire(timeout=1)
    lock.release()


class Slow:
    """A class with a property that another thread computes."""

    def __init__(self, pause: Callable[[], None]) -> None:
        self.pause = pause

    @cached_property
    def value(self) -> int:
        self.pause()
        return 1


def test_properties_are_computed_in_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("simtbed.slow")
    vars(module)["Slow"] = Slow
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def compute(pause: Callable[[], None]) -> None:
        assert Slow(pause).value

    with in_thread(compute):
        assert child(lambda: Slow(lambda: None).value == 1)


def test_a_fork_waits_for_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_to_import.py").write_text("import test_forks_pause\ntest_forks_pause.pause()\n")
    monkeypatch.syspath_prepend(tmp_path)
    pausing = ModuleType("test_forks_pause")
    monkeypatch.setitem(sys.modules, pausing.__name__, pausing)

    def load(pause: Callable[[], None]) -> None:
        vars(pausing)["pause"] = pause
        import_module("slow_to_import")

    with in_thread(load):
        assert child(lambda: bool(import_module("slow_to_import")))
    del sys.modules["slow_to_import"]
    monkeypatch.setattr(forking, "IMPORT_SECONDS", 0.0)

    def load_again() -> bool:
        vars(pausing)["pause"] = lambda: None
        return bool(import_module("slow_to_import"))

    with in_thread(load):  # the fork did not wait
        assert child(load_again)


@st.kernel
def add(x: Global[i32], y: Global[i32]) -> None:
    x[st.thread.x] += y[st.thread.x]


def test_an_array_changed_at_a_fork_is_empty_in_the_child() -> None:
    changing, reading = st.DeviceArray(np.ones(4, np.int32)), st.DeviceArray(np.ones(4, np.int32))

    def hold(pause: Callable[[], None]) -> None:
        with changing.lock, reading.lock:
            changing.changing = True
            pause()
            changing.changing = False

    def launched(x: st.DeviceArray) -> bool:
        st.launch(add, grid=1, block=4, args={"x": x, "y": reading})
        return bool((x.numpy() == 2).all())

    def refused() -> bool:
        for use in (changing.numpy, lambda: launched(changing)):
            with pytest.raises(st.LaunchError, match="create it after the fork"):
                use()
        return launched(st.DeviceArray(np.ones(4, np.int32)))

    with in_thread(hold):
        assert child(refused)
    assert launched(changing)
    assert child(lambda: changing.numpy().tolist() == [2] * 4)
