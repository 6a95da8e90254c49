"""Tracebacks of errors of launches end at the user's call, in every place that shows them; short texts of results."""

import io
import pydoc
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.errors import VerifyError
from simtbed.span import Span
from simtbed.testing import verify

from tests.table_checks import each_row


@st.kernel
def refused(out: st.Global[st.f32]) -> None:
    out[0] = absent  # type: ignore[name-defined]  # noqa: F821


@st.kernel
def beyond(out: st.Global[st.f32]) -> None:
    out[st.lane + 1] = st.f32(1)


@st.kernel
def copied(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    out[st.lane] = x[st.lane]


def run(kernel: Any, *args: Any, **how: Any) -> Any:
    return st.launch(kernel, grid=1, block=32, args=args, engine="numpy", **how)


CASES: dict[str, tuple[type[st.SimtbedError], Callable[[], object]]] = {
    "a refused kernel": (st.CompileError, lambda: run(refused, st.empty(1, st.f32))),
    "a fault": (st.FaultError, lambda: run(beyond, st.empty(32, st.f32), counters=False)),
    "a wrong argument": (st.LaunchError, lambda: run(beyond, 3)),
    "a wrong shape": (st.LaunchError, lambda: st.empty(-1, st.f32)),
    "a wrong value": (st.LaunchError, lambda: st.full(3, "x", st.f32)),
    "whatif": (st.CompileError, lambda: st.whatif(refused, grid=1, block=1, args={"out": st.empty(1, st.f32)})),
    "verify": (st.CompileError, lambda: verify(refused, grid=1, block=1, args={"out": st.empty(1, st.f32)})),
}


UNDECORATED: dict[str, tuple[type[st.SimtbedError], Callable[[], object]]] = {
    "a kernel that is called": (st.HostCallError, lambda: copied(1, 2)),
    "a word on the host": (st.HostCallError, st.sync),
    "a device array of a list": (st.LaunchError, lambda: st.DeviceArray([1])),  # type: ignore[arg-type]
    "not a function": (st.LaunchError, lambda: st.kernel(3)),  # type: ignore[call-overload]
}
"""Functions without the hidden frame."""


def caught(name: str) -> st.SimtbedError:
    kind, act = {**CASES, **UNDECORATED}[name]
    with pytest.raises(kind) as error:
        act()
    return error.value


PACKAGE = str(Path(st.__file__).parent)


def own_files(text: str) -> list[str]:
    """Return the lines with frames of the package."""
    return [line for line in text.splitlines() if line.lstrip().startswith("File") and PACKAGE in line]


@pytest.fixture(autouse=True)
def hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the hooks of the process after each test."""
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)


@each_row([*CASES, *UNDECORATED])
def test_an_uncaught_error_shows_user_frames_and_message(name: str) -> None:
    error = caught(name)
    with redirect_stderr(io.StringIO()) as shown:
        sys.excepthook(type(error), error, error.__traceback__)
    text = shown.getvalue()
    assert own_files(text) == [] and __file__ in text and text.rstrip().endswith(str(error).splitlines()[-1])


def test_a_thread_shows_the_same() -> None:
    caught("a fault")  # the first error of a process replaces the hook
    with redirect_stderr(io.StringIO()) as shown:
        thread = threading.Thread(target=CASES["a fault"][1])
        thread.start()
        thread.join()
    assert own_files(shown.getvalue()) == [] and "global write out of bounds" in shown.getvalue()


@each_row(CASES)
def test_a_caught_error_has_one_hidden_frame(name: str) -> None:
    frames = traceback.extract_tb(caught(name).__traceback__)
    (own,) = (frame.name for frame in frames if frame.filename.startswith(PACKAGE))
    assert own in ("call", "launch")


def test_pytest_shows_the_call(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import simtbed as st
        from simtbed import Global, f32

        @st.kernel
        def refused(out: Global[f32]) -> None:
            out[0] = absent

        def test_kernel():
            st.launch(refused, grid=1, block=1, args=[st.empty(1, f32)])
    """)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-n0")
    result.stdout.fnmatch_lines(["E*CompileError: test_pytest_shows_the_call.py:6:14: absent is not defined"])
    result.stdout.no_fnmatch_line("*tracebacks.py*")


def test_other_errors_and_hooks_are_unchanged() -> None:
    def defect() -> None:
        raise VerifyError("a defect")

    with pytest.raises(VerifyError) as error:
        st.tracebacks.without_own_frames(defect)()
    assert traceback.extract_tb(error.value.__traceback__)[-1].name == "defect"
    assert sys.excepthook is sys.__excepthook__
    sys.excepthook = own = lambda *args: None
    caught("a fault")
    assert sys.excepthook is own
    assert st.tracebacks.user_frames(ValueError(), error.value.__traceback__) is error.value.__traceback__


def test_a_notebook_names_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = {__file__: 3}
    shell = SimpleNamespace(compile=SimpleNamespace(_filename_map=cells))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    lines = caught("a fault")._render_traceback_()
    assert lines[0] == "Traceback (most recent call last):" and lines[1].startswith('  File "In[3]", line ')
    assert own_files("\n".join(lines)) == []
    assert any(line.startswith("simtbed.runtime.result.FaultError: In[3]:") for line in lines)
    cells.clear()
    assert Span(__file__, 1, 1, 1, 1).name == "tests/runtime/test_tracebacks.py"


def test_short_texts() -> None:
    with st.profiling() as launches:
        result = run(copied, np.ones(32, np.float32), st.empty(32, st.f32))
    profile = result.profile()
    assert [repr(one) for one in (result, launches, launches.launches[0], result.counters, profile)] == [
        "<Result of copied: out float32[32]; faults 0; warp instructions 2>",
        "<Run: launches 1; kernels copied>",
        "<Launch of copied: grid 1, block 32; numpy, H200; faults 0>",
        "<Counters: lines 1; warp instructions 2; sectors 8>",
        "<Profile of copied: 1 launch on H200; warp instructions 2>",
    ]
    title, heads, _, row = str(profile).splitlines()
    assert title == "copied: 1 launch on H200"
    assert heads.split() == ["line", "instructions", "lanes", "requests", "sectors", "source"]
    assert row.split()[1:5] == ["2", "32.0", "2", "8"] and row.endswith("  out[st.lane] = x[st.lane]")


def test_the_help_fits_a_screen() -> None:
    lines = pydoc.plain(pydoc.render_doc(st.launch)).splitlines()
    wrapped = sum(-(-len(line) // 100) or 1 for line in lines)
    assert 24 <= wrapped <= 40
