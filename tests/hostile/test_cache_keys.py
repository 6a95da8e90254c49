"""Keys of the disk cache: an entry is reused only if all its inputs are unchanged."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Device, Global, disk_cache, i32
from simtbed.compiled import kernel as compiled
from simtbed.engines.cuda import nvcc, sass
from simtbed.engines.cuda.binary import binary
from simtbed.engines.llvm.engine import WORTH_OPTIMISING, LlvmEngine
from simtbed.maths import _compiled
from simtbed.model import sweeps
from simtbed.runtime.engine import Request
from simtbed.runtime.request import prepare_request

from tests.hardware.listing import listing
from tests.hostile.test_cache_entries import summed
from tests.language.test_cuda_build import REPORT, elf

ROOT = Path(disk_cache.__file__).parent
BY_TEXT = (".helper", ".cubin", ".nvcc", ".listing")
"""Entries named by the whole text or code that they are made of, and by their compiler."""


@st.kernel
def quotients(x: Global[i32], out: Global[st.f64]) -> None:
    i = st.block.x * 32 + st.thread.x
    out[i] = st.exp(st.f64(x[i] // x[i + 1]))


def no_registers(request: Request, device: Device) -> int:
    return 0


X = np.arange(1, 66, dtype=np.int32)


def work(**how: Any) -> sweeps.SweepWork:
    args = {"x": X, "out": st.empty(64, "f64")}
    (task,) = sweeps.plan(
        sweeps.RepeatableLaunch(quotients, (2, 1, 1), (32, 1, 1), args), sweeps.Axes(), [st.devices.H200]
    )
    return sweeps.SweepWork(task, False, how.pop("registers", None), **how)


def everything() -> None:
    """Every kind of entry, as created in a new process."""
    vars(quotients).pop("_facts", None)
    summed._codes.clear()
    _compiled.clear()
    engine = LlvmEngine()
    for check in ((), "all"):
        request = prepare_request(quotients, grid=2, block=32, args={"x": X, "out": st.empty(64, "f64")}, check=check)
        engine.run(request)
        for kernel in engine._kernels[request.specialisation].values():
            kernel.record_runtime(2 * WORTH_OPTIMISING)
    summed(X, 65)
    sweeps.solve(work())
    binary(request, "sm_90")
    sass._disassembled.cache_clear()
    sass.disassemble(b"cubin", "quotients")


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[str]]:
    """The names under which `everything` keeps what it makes, in an empty folder."""
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: Path("nvcc"))
    monkeypatch.setattr(nvcc, "version", lambda nvcc: "release 1")
    monkeypatch.setattr(nvcc, "_compile", lambda *_: (elf(_text=80), REPORT.replace("twice", "quotients")))
    monkeypatch.setattr(sass, "find_nvdisasm", lambda: Path("nvdisasm"))
    monkeypatch.setattr(sass, "_listing", lambda *_: listing("quotients", "1 | EXIT"))
    monkeypatch.setattr(compiled, "tools", lambda: ("release 1", ""))
    saved: set[str] = set()
    monkeypatch.setattr(disk_cache, "load", lambda name, read: None)
    monkeypatch.setattr(disk_cache, "save", lambda name, content: saved.add(name))

    def saved_names() -> set[str]:
        saved.clear()
        everything()
        return set(saved)

    return saved_names


@pytest.mark.slow
def test_nothing_of_another_edition_is_found(names: Callable[[], set[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what is named by the whole text that it is made of."""
    names()  # functions that check launches are compiled once a process
    editions = []
    for edition in ("one", "other", "one"):
        monkeypatch.setattr(disk_cache, "edition", lambda edition=edition: edition)
        editions.append({name for name in names() if not name.endswith(BY_TEXT)})
    assert {Path(name).suffix for name in editions[0]} == {".o", ".object", ".slow", ".kernel", ".whatif"}
    assert editions[0] == editions[2] and not editions[0] & editions[1]


USED = """
import json, sys
import numpy as np
import simtbed as st
from simtbed.native import native

@st.kernel
def swap(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    tile = st.shared(st.f32, 32)
    tile[st.thread.x] = st.exp(x[st.thread.x])
    st.sync()
    out[st.thread.x] = tile[31 - st.thread.x]

@native
def doubled(n: st.i32) -> st.i32:
    return 2 * n

x = np.ones(32, np.float32)
for engine in ("jit", "numpy"):
    result = st.launch(swap, grid=1, block=32, args=[x, st.empty(32, st.f32)], engine=engine, check="all", detail=True, compiled=True)
    result.profile(), result.source
assert doubled(3) == 6
st.whatif(swap, grid=1, block=32, args=dict(x=x, out=st.empty(32, st.f32)), device=["H200", "K40"])
print(json.dumps([m.__file__ for n, m in sys.modules.items() if n.partition(".")[0] == "simtbed" and getattr(m, "__file__", None)]))
"""


@pytest.mark.slow
def test_the_edition_depends_on_every_source_of_an_answer(tmp_path: Path) -> None:
    """What a process imported that ran and checked kernels, compiled functions for the host and answered what if."""
    script = tmp_path / "used.py"
    script.write_text(USED)
    completed = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    imported = {os.path.realpath(path) for path in json.loads(completed.stdout)}
    covered = {os.path.realpath(entry.path) for entry in disk_cache._sources(str(ROOT))}
    assert len(imported) > 150 and sorted(imported - covered) == []


@pytest.mark.parametrize("changed", ["machine/device.py", "model/time.py", "model/validated.py", "sass/integer.py",
    "profiler/events.py", "passes/waiting.py", "machine/timing.py"])  # fmt: skip
def test_another_source_is_another_edition(changed: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "simtbed"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(disk_cache, "__file__", str(copy / "disk_cache.py"))
    monkeypatch.setattr(disk_cache, "_PROCESS_START", 1 << 62)
    before = disk_cache.edition.__wrapped__()
    with open(copy / changed, "a") as file:
        file.write("# another constant\n")
    assert disk_cache.edition.__wrapped__() != before


# ------------------------------------------------------------------ sources that change while a process runs
@pytest.fixture
def edited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A source file of the emulator that is written after the process began."""
    (tmp_path / "source").mkdir()
    monkeypatch.setattr(disk_cache, "__file__", str(tmp_path / "source/disk_cache.py"))
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "source/module.py").write_text("x = 1\n")
    seconds = iter(range(1 << 30))
    monkeypatch.setattr(disk_cache, "_second", lambda: next(seconds))
    monkeypatch.setattr(disk_cache, "_PROCESS_START", time.time_ns())
    disk_cache._edited.cache_clear()
    yield tmp_path / "source/module.py"
    disk_cache._edited.cache_clear()
    disk_cache._DISABLED.clear()


def write_later(path: Path, text: str) -> None:
    """Clocks of file systems tick a few hundred times a second."""
    time.sleep(0.02)
    path.write_text(text)


def test_sources_changed_before_reading_have_no_edition(edited: Path) -> None:
    """The process may run what was there before."""
    time.sleep(0.02)
    disk_cache._PROCESS_START = time.time_ns()
    whole = disk_cache.edition.__wrapped__()
    assert disk_cache.edition.__wrapped__() == whole
    write_later(edited, "x = 2\n")
    first, second = disk_cache.edition.__wrapped__(), disk_cache.edition.__wrapped__()
    assert len({whole, first, second}) == 3


def test_an_old_time_hides_no_change(edited: Path) -> None:
    """As of files that are copied with their times."""
    write_later(edited, "x = 2\n")
    os.utime(edited, (1, 1))
    assert disk_cache.edition.__wrapped__() != disk_cache.edition.__wrapped__()


@pytest.mark.skipif(sys.platform == "win32", reason="only that time is known there")
def test_a_future_time_is_no_change(edited: Path) -> None:
    """As of files that were unpacked by the clock of another machine: compiled code is kept all the same."""
    os.utime(edited, (1 << 32, 1 << 32))
    time.sleep(0.02)
    disk_cache._PROCESS_START = time.time_ns()
    assert disk_cache.edition.__wrapped__() == disk_cache.edition.__wrapped__()
    disk_cache.save("a" * 64 + ".o", b"content")
    assert disk_cache.load("a" * 64 + ".o", bytes) == b"content"


def test_nothing_is_kept_once_a_source_has_changed(edited: Path) -> None:
    """What is imported late is not what the edition was taken of."""
    time.sleep(0.02)
    disk_cache._PROCESS_START = time.time_ns()
    first, second = (letter * 64 + ".o" for letter in "ab")
    disk_cache.save(first, b"")
    write_later(edited, "x = 2\n")
    disk_cache.save(second, b"")
    assert disk_cache.load(first, bytes) == b"" and disk_cache.load(second, bytes) is None


# ------------------------------------------------------------------ sweeps
@pytest.mark.parametrize("tools", [("", "", ""), ("release 2", "", ""), ("release 1", "b", ""), ("release 1", "", "2")])
def test_a_sweep_with_other_tools_is_another_one(tools: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "tools", lambda: ("release 1", ""))
    name, source = work().name(), work(source_only=True).name()
    monkeypatch.setattr(sweeps, "tools", lambda: tools)
    assert work().name() != name and work(source_only=True).name() == source


def test_the_tools_are_those_that_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    for name in ("PATH", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    assert compiled.tools() == ("", "")
    (tmp_path / "bin").mkdir()
    for name in ("nvcc", "nvdisasm"):
        program = tmp_path / "bin" / name
        program.write_text("#!/bin/sh\necho release 7\n" if name == "nvcc" else "")
        program.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    first = compiled.tools()
    assert first[0] == "release 7" and first[1]
    (tmp_path / "bin/nvdisasm").write_text("another")
    assert compiled.tools()[1] != first[1]


def test_a_compiler_that_does_not_run_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvcc"
    program.write_text("not a program")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compiled.tools()[0] == ""


def test_registers_are_of_the_current_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = work(registers=no_registers).name()
    assert work(registers=no_registers).name() == name != work().name()
    another = tmp_path / "registers.py"
    another.write_text("another")
    monkeypatch.setattr("simtbed.model.sweeps.inspect.getfile", lambda function: str(another))
    assert work(registers=no_registers).name() != name


@pytest.mark.slow
def test_an_unknown_version_is_queried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's memory may have been full."""
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path / "cache"))

    def full(request: Request, **how: Any) -> Any:
        raise st.LaunchError("no memory")

    with monkeypatch.context() as patched:
        patched.setattr(sweeps, "observe", full)
        assert sweeps.solve(work(source_only=True))[2] == "quotients, as launched: no memory"
    assert sweeps.solve(work(source_only=True))[0]
