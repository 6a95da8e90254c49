"""File access boundary: only kernels/files opens, reads or writes files; each exception is listed with its reason."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("emulator", "kernels", "oracles", "reports")
ALLOWED_FOLDER = ROOT / "kernels/files"

METHODS = {
    "open", "fdopen", "read_text", "read_bytes", "write_text", "write_bytes", "unlink", "rename", "TemporaryFile",
    "NamedTemporaryFile", "TemporaryDirectory", "SpooledTemporaryFile", "mkstemp", "mkdtemp", "copyfile", "rmtree",
    "memmap", "fromfile", "tofile", "loadtxt", "savetxt", "genfromtxt", "savez", "savez_compressed",
}  # fmt: skip
"""Names of functions and methods that open, read, write or remove files."""
OF_MODULES = {("np", "load"), ("np", "save"), ("json", "load"), ("tomllib", "load")}
OF_MODULES |= {("os", name) for name in ("replace", "remove", "link")}
"""Functions whose names mean something else elsewhere."""

EXCEPTIONS = {
    # caches, which have rules of their own
    "emulator/disk_cache.py": {"open", "unlink"},
    # small files of a project, devices and saved runs; the emulator does not import the kernels
    "emulator/documents.py": {"open"},
    # kernels of the tests and of the checks: Python must find their source in a file
    "emulator/testing/source_text.py": {"write_text"},
    # the headers of CUDA C++, which are files of the package
    "emulator/cuda_cpp/header.py": {"read_text"},
    # files for the compiler, and its output
    "emulator/cuda_cpp/clang.py": {"TemporaryDirectory", "read_text", "write_text"},
    "emulator/cuda_cpp/header_files.py": {"read_text"},
    "emulator/host_apis/cuda/build.py": {"TemporaryDirectory", "read_bytes", "read_text", "write_bytes", "write_text"},
    "emulator/host_apis/cuda/declarations.py": {"read_text"},
    "emulator/host_apis/cuda/devices.py": {"read_text"},
    "emulator/host_apis/cuda/process.py": {"TemporaryDirectory", "write_bytes"},
    # the source of kernels, read when a module defines them
    "emulator/source_text.py": {"open"},
    # files of a project that the pytest plugin reads and writes
    "emulator/testing/plugin.py": {"mkdtemp"},
    "emulator/testing/written.py": {"write_text", "replace", "unlink"},
    # data of coverage.py, which reads and writes files itself, and the text of kernels
    "reports/targets/coverage.py": {"TemporaryDirectory", "copyfile", "read_bytes"},
    # the system's report on the process
    "emulator/runtime/memory.py": {"read_text"},
    # a profiling run saved as a file
    "emulator/profiler/run.py": {"write_text"},
    # files that an observed program writes for the observing process
    "emulator/runtime/observer_folder.py": {"open", "replace"},
    "reports/targets/running.py": {"TemporaryDirectory"},
    # the file in site-packages that Python executes at its start
    "reports/cli/numba.py": {"write_text", "unlink"},
    # the terminal, to find its foreground process group
    "reports/targets/forwarding.py": {"open"},
    # folders for programs that read and write files: compilers, profilers, other emulators
    "emulator/engines/cuda/nvcc.py": {"TemporaryDirectory", "write_text", "read_bytes"},
    "emulator/engines/cuda/sass.py": {"NamedTemporaryFile"},
    # a library of the CUDA toolkit
    "emulator/numba/gpu_code.py": {"read_bytes"},
    "reports/hardware/nsight.py": {"TemporaryDirectory"},
    "reports/hardware/single_accesses.py": {"TemporaryDirectory"},
    "reports/hardware/profiled.py": {"TemporaryDirectory", "read_text"},
    "reports/hardware/profiled_process.py": {"write_text"},
    "reports/bench/emulation.py": {"TemporaryDirectory"},
    "reports/bench/observed.py": {"TemporaryDirectory"},
    "reports/bench/oclgrind.py": {"TemporaryDirectory", "read_text", "write_text"},
    "reports/bench/files.py": {"TemporaryDirectory"},
    # into a file that kernels/files opened
    "reports/bench/generated_inputs.py": {"savez"},
    "reports/bench/pairhmm.py": {"TemporaryDirectory"},
    "reports/bench/start.py": {"read_text", "write_text"},
    # data of the package
    "emulator/language/words.py": {"read_text"},
    "emulator/profiler/html/page.py": {"read_text"},
    "reports/papers/formats.py": {"read_text"},
    "reports/whatif/report.py": {"read_text"},
    "reports/cli/ci.py": {"read_text"},
    "reports/cli/new.py": {"read_text"},
    # the summary page of a step of GitHub's; each program appends to it
    "reports/cli/check.py": {"open"},
    "reports/hardware/compare.py": {"read_text"},
    "reports/hardware/timed_process.py": {"open", "read_text"},
    "reports/hardware/traffic.py": {"TemporaryDirectory", "read_text", "write_text"},
    # members of an archive and a view of a file that kernels/files opened
    "kernels/sfs/host/files_npz.py": {"open"},
    "kernels/sfs/host/spectrum.py": {"memmap"},
}


def _forbidden_calls(path: Path) -> set[str]:
    """Return the forbidden names that a file calls."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in METHODS:
            names.add(called.id)
        if isinstance(called, ast.Attribute):
            owner = called.value.id if isinstance(called.value, ast.Name) else ""
            if called.attr in METHODS or (owner, called.attr) in OF_MODULES:
                names.add(called.attr)
    return names


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_only_kernels_files_accesses_files(folder: str) -> None:
    wrong = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not path.is_relative_to(ALLOWED_FOLDER) and (used := _forbidden_calls(path) - EXCEPTIONS.get(name, set())):
            wrong[name] = used
    assert wrong == {}


def test_no_exception_is_left_over() -> None:
    assert {
        name: names - _forbidden_calls(ROOT / name)
        for name, names in EXCEPTIONS.items()
        if names - _forbidden_calls(ROOT / name)
    } == {}
