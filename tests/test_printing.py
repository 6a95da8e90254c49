"""Sinks of text: only the functions that escape a text print it; each exception is listed with its reason."""

import ast
from pathlib import Path

import pytest

from tests.test_file_access import FOLDERS, ROOT

STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
EXCEPTIONS = {
    # the sinks
    "reports/printing.py": {"print", "stdout", "stderr"},
    "reports/terminal.py": {"Console", "stderr"},
    # standard streams as descriptors, and their errors
    "kernels/files/outputs.py": {"stdout"},
    "kernels/files/paths.py": {"stdout"},
    "kernels/files/standard_streams.py": {"stdout", "stderr"},
    "reports/targets/running.py": {"stdout"},
    # one line of the emulator, printable
    "emulator/disk_cache.py": {"print", "stderr"},
    "emulator/numba_hook.py": {"stderr"},
    "emulator/triton/benchmarks.py": {"print"},
    # the print of a kernel is that of the user's program; one line, printable, if it cannot be shown
    "emulator/runtime/prints.py": {"print", "stderr", "stdout"},
    # JSON of processes that a benchmark or a measurement starts
    "reports/bench/start.py": {"print"},
    # the program's buffers are written before its process ends
    "reports/targets/debugger.py": {"stderr", "stdout"},
    "emulator/host_apis/cuda/runtime.py": {"stderr", "stdout"},
    "reports/bench/cudasim.py": {"print"},
    "reports/hardware/timed_process.py": {"print", "stderr"},
}


def _sinks(path: Path) -> set[str]:
    """Return the functions that print and the streams that a file names."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in ("print", "Console"):
                names.add(called.id)
            if isinstance(called, ast.Attribute) and called.attr in ("echo", "secho", "Console"):
                names.add(called.attr)
        if (
            isinstance(node, ast.Attribute)
            and node.attr in STREAMS
            and isinstance(node.value, ast.Name)
            and node.value.id == "sys"
        ):
            names.add(node.attr)
    return names


@pytest.mark.slow
def test_only_sinks_print() -> None:
    used = {
        path.relative_to(ROOT).as_posix(): sinks
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (sinks := _sinks(path))
    }
    assert used == EXCEPTIONS
