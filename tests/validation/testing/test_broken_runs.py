"""Broken runs of tests: each ends with a nonzero exit code and a reason."""

import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from tests.compilers import needs_nvcc
from tests.testing.projects import COSTS, PLAIN, baseline, run


def test_update_is_refused_in_ci(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    pytester.makepyfile(COSTS)
    assert run(pytester, "--simtbed-update").ret == pytest.ExitCode.USAGE_ERROR
    assert not baseline(pytester).exists()


RUNS: dict[str, tuple[str, tuple[str, ...], int, str]] = {
    "no tests": ("", (), 5, "no tests ran"),
    "deselected": (PLAIN, ("-k", "nothing"), 5, "1 deselected"),
    "no plugin": (PLAIN, ("-p", "no:simtbed", "--simtbed-check", "all"), 4, "unrecognized arguments"),
    "import error": ("import not_there", (), 2, "No module named 'not_there'"),
    "refused kernel": (PLAIN.replace("st.sync()", "import os"), (), 1, "import"),
    "no baseline": (COSTS, (), 1, "has no baseline"),
    "no GPU": (PLAIN, ("--simtbed-engine", "cuda"), 1, "1 failed"),
    "empty report": ("def test_it():\n    pass", ("--simtbed-report", "page.html"), 1, "so there is nothing to report"),
    "empty record": (
        "def test_it():\n    pass",
        ("--simtbed-write-launches", "made"),
        1,
        "there is no launch to record",
    ),
    "dead worker": ("import os\ndef test_dies():\n    os._exit(9)", ("-n", "1"), 1, "crashed"),
}
"""Tests, options, the exit code and its reason."""


@pytest.mark.parametrize("name", RUNS)
def test_a_broken_run_does_not_pass(pytester: pytest.Pytester, name: str) -> None:
    source, options, code, reason = RUNS[name]
    pytester.makepyfile(source)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
    assert result.ret == code
    assert reason in result.stdout.str() + result.stderr.str()


def test_a_missing_engine_fails(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyCUDA is not installed."""
    (pytester.path / "pycuda.py").write_text("raise ModuleNotFoundError(name='pycuda')")
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    pytester.makepyfile(PLAIN)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--simtbed-engine", "cuda")
    assert result.ret == 1 and "PyCUDA" in result.stdout.str()


TOO_OLD = """
class Error(Exception): pass
class MemoryError(Error): pass
def init(): pass
def get_driver_version(): return 12020
class Device:
    @staticmethod
    def count(): return 1
    def __init__(self, number): pass
    def name(self): return "a GPU"
    def compute_capability(self): return (9, 0)
    def retain_primary_context(self): return Context()
class Context:
    def push(self): pass
    def pop(self): pass

import ctypes
INVALID_IMAGE = 200
class Driver:
    # the driver's own library
    def __getattr__(self, name):
        if not name.startswith("cu"): raise AttributeError(name)
        return {"cuModuleLoadData": reject, "cuGetErrorString": describe}.get(name, lambda *arguments: 0)
def reject(*arguments): return INVALID_IMAGE
def describe(status, text): text._obj.value = b"device kernel image is invalid"
load = ctypes.CDLL
ctypes.CDLL = lambda name, *rest, **options: Driver() if name == "libcuda.so.1" else load(name, *rest, **options)
"""
"""PyCUDA, and a driver that rejects nvcc's output."""


@needs_nvcc
def test_a_driver_that_is_too_old_fails_with_both_versions(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.mkpydir("pycuda").joinpath("driver.py").write_text(TOO_OLD)
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    pytester.makepyfile(PLAIN)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--simtbed-engine", "cuda")
    assert result.ret == 1
    assert (
        "its driver is for CUDA 12.2, and the kernel was made by Cuda compilation tools, release" in result.stdout.str()
    )


@pytest.mark.parametrize("option", ["--simtbed-write-launches", "--simtbed-report", "--simtbed-update"])
def test_a_full_disk_fails_and_leaves_what_was_there(pytester: pytest.Pytester, option: str) -> None:
    """Files are limited to a few bytes, as on a full disk."""
    pytester.makepyfile(test_a=COSTS)
    assert run(pytester, "--simtbed-update").ret == 0
    text = baseline(pytester).read_text()
    (pytester.path / "made").write_text("what was there")
    words = [option] if option == "--simtbed-update" else [option, "made"]

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-s", *words]
    quiet = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.run(command, cwd=pytester.path, env=quiet, preexec_fn=full, capture_output=True, text=True)
    assert process.returncode == 1 and "File too large" in process.stdout, process.stdout + process.stderr
    assert baseline(pytester).read_text() == text and (pytester.path / "made").read_text() == "what was there"
    assert {path.name for path in pytester.path.iterdir()} <= {"test_a.py", "made", ".simtbed", "__pycache__", ".cache"}
    assert [path.name for path in baseline(pytester).parent.iterdir()] == [baseline(pytester).name]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_for_its_time_does_not_pass(pytester: pytest.Pytester, number: signal.Signals) -> None:
    """CI services send these signals at the end of a job's time."""
    pytester.makepyfile(
        PLAIN + "\ndef test_sleeps():\n    open('started', 'w').close()\n    import time\n    time.sleep(600)"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--simtbed-write-launches", "made"]

    def heeding() -> None:  # the tests themselves may run in the background
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    process = subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.DEVNULL, preexec_fn=heeding)
    while not (pytester.path / "started").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait() != 0
    launches = pytester.path / "made"
    assert number == signal.SIGINT or not launches.exists()
