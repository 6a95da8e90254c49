"""The house has one door for files: who opens, reads or writes one by another way stands in a short list with the reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("emulator", "kernels", "oracles", "reports")
DOOR = ROOT / "kernels/files"

METHODS = {
    "open", "fdopen", "read_text", "read_bytes", "write_text", "write_bytes", "unlink", "rename", "TemporaryFile",
    "NamedTemporaryFile", "TemporaryDirectory", "SpooledTemporaryFile", "mkstemp", "mkdtemp", "copyfile", "rmtree",
    "memmap", "fromfile", "tofile", "loadtxt", "savetxt", "genfromtxt", "savez", "savez_compressed",
}  # fmt: skip
"""Names of functions and methods that open, read, write or remove files."""
OF_MODULES = {
    ("np", "load"),
    ("np", "save"),
    ("os", "replace"),
    ("os", "remove"),
    ("os", "link"),
    ("json", "load"),
    ("tomllib", "load"),
}
"""Functions whose names mean something else elsewhere."""

EXCEPTIONS = {
    # caches, which have rules of their own
    "emulator/disk_cache.py": {"open", "unlink"},
    # a device's few lines, below the door: the emulator does not know the kernels
    "emulator/machine/device.py": {"read_text"},
    # kernels of the tests and of the checks, which Python must find in a file
    "emulator/testing/source_text.py": {"write_text"},
    # what a project keeps beside its tests, which the pytest plugin reads and writes
    "emulator/testing/known.py": {"read_text"},
    "emulator/testing/plugin.py": {"mkdtemp"},
    "emulator/testing/written.py": {"write_text", "replace", "unlink"},
    "emulator/testing/watching.py": {"open", "read_bytes", "replace", "write_bytes"},
    "emulator/testing/answers.py": {"read_text"},
    "emulator/testing/budgets.py": {"read_text"},
    # what the system says of the process
    "emulator/runtime/memory.py": {"read_text"},
    # a run as data, which the library saves and loads: below the door too
    "emulator/profiler/run.py": {"read_text", "write_text"},
    # what a program that is watched leaves for its watcher
    "emulator/runtime/observing.py": {"read_bytes"},
    "reports/targets/running.py": {"TemporaryDirectory", "write_bytes"},
    "reports/targets/stream.py": {"open"},
    # folders for programs that take and leave files: compilers, profilers, other emulators
    "emulator/engines/cuda/nvcc.py": {"TemporaryDirectory", "write_text", "read_bytes"},
    "emulator/engines/cuda/sass.py": {"NamedTemporaryFile"},
    "reports/hardware/nsight.py": {"TemporaryDirectory"},
    "reports/hardware/single_accesses.py": {"TemporaryDirectory"},
    "reports/hardware/profiled.py": {"TemporaryDirectory", "read_text"},
    "reports/hardware/profiled_process.py": {"write_text"},
    "reports/bench/emulation.py": {"TemporaryDirectory"},
    "reports/bench/observed.py": {"TemporaryDirectory"},
    "reports/bench/oclgrind.py": {"TemporaryDirectory", "write_text"},
    "reports/bench/files.py": {"TemporaryDirectory"},
    # into a file that the door opened
    "reports/bench/generated_inputs.py": {"savez"},
    "reports/bench/pairhmm.py": {"TemporaryDirectory"},
    "reports/bench/start.py": {"read_text", "write_text"},
    # data of the package
    "emulator/profiler/html/page.py": {"read_text"},
    "reports/papers/formats.py": {"read_text"},
    "reports/whatif/report.py": {"read_text"},
    "reports/cli/ci.py": {"read_text"},
    "reports/cli/new.py": {"read_text"},
    # the page of a step of GitHub's, to which each program adds
    "reports/cli/check.py": {"open"},
    "reports/hardware/compare.py": {"read_text"},
    "reports/hardware/timed_process.py": {"open", "read_text"},
    "reports/hardware/traffic.py": {"TemporaryDirectory", "read_text", "write_text"},
    # members of an archive and a view of a file, which the door opened
    "kernels/sfs/host/files_npz.py": {"open"},
    "kernels/sfs/host/spectrum.py": {"memmap"},
}


def _used(path: Path) -> set[str]:
    """What a file calls of the forbidden names."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in METHODS:
            found.add(called.id)
        if isinstance(called, ast.Attribute):
            owner = called.value.id if isinstance(called.value, ast.Name) else ""
            if called.attr in METHODS or (owner, called.attr) in OF_MODULES:
                found.add(called.attr)
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_go_through_the_door(folder: str) -> None:
    wrong = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not path.is_relative_to(DOOR) and (used := _used(path) - EXCEPTIONS.get(name, set())):
            wrong[name] = used
    assert wrong == {}


def test_no_exception_is_left_over() -> None:
    assert {name: names - _used(ROOT / name) for name, names in EXCEPTIONS.items() if names - _used(ROOT / name)} == {}
