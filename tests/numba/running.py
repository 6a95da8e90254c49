"""Programs of Numba-CUDA in processes of their own, under commands of simtbed."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent
PROGRAMS, MISTAKES, FEATURES = FOLDER / "programs.py", FOLDER / "mistakes.py", FOLDER / "features.py"
IDIOMS, CONTAINERS = FOLDER / "idioms.py", FOLDER / "containers.py"


LINKED = """
import numpy as np
from numba import cuda

@cuda.jit(link=["code.cu"])
def linked(x):
    x[0] = 1

linked[1, 1](np.zeros(1))
"""
"""A kernel with code for NVIDIA's linker."""
RAISING = """
import numpy as np
from numba import cuda

@cuda.jit(debug=True, opt=False)
def check(x):
    if x[cuda.grid(1)] < 0:
        raise ValueError("negative")

check[1, 4](np.arange(4.0))
try:
    check[1, 4](np.array([0.0, -1.0, 2.0, 3.0]))
except ValueError as error:
    text = str(error)
"""
"""A kernel that raises an exception in its second launch; `text` is that of the exception."""
PYTEST = """
import numpy as np
from numba import cuda

@cuda.jit
def fill(x):
    x[cuda.grid(1)] = 7

def test_fill():
    x = np.zeros(4)
    fill[1, 4](x)
    assert (x == 7).all() and cuda.get_current_device().name == "simtbed H200"

def test_again():
    test_fill()
"""


def mlir_text(text: str) -> str:
    """Return a program of Numba-CUDA as a program of `numba_cuda_mlir`: only its imports change."""
    types = r"from numba_cuda_mlir import cuda\nfrom numba_cuda_mlir.types import \1"
    text = re.sub(r"^from numba import cuda, (.*)", types, text, flags=re.MULTILINE)
    text = re.sub(r"^from numba import cuda$", "from numba_cuda_mlir import cuda", text, flags=re.MULTILINE)
    return text.replace("from numba.cuda.", "from numba_cuda_mlir.cuda.")


def mlir_script(source: Path, folder: Path) -> Path:
    """Write the file of a program of Numba-CUDA into a folder as a program of `numba_cuda_mlir`."""
    script = folder / source.name
    script.write_text(mlir_text(source.read_text(encoding="utf-8")), encoding="utf-8")
    return script


def expected_findings(mistakes: Path) -> dict[str, tuple[int, str, int]]:
    """Return line, kind and first column of the mistake of each kernel, from the comments of a script."""
    lines = mistakes.read_text(encoding="utf-8").splitlines()
    matches = [
        (n, line, re.search(r"  # (bounds|race|uninitialised|barrier): (.*)", line)) for n, line in enumerate(lines, 1)
    ]
    marks = [(n, match[1], line.index(match[2]) + 1) for n, line, match in matches if match is not None]
    names = re.findall(r"^@cuda\.jit\ndef (\w+)", "\n".join(lines), re.MULTILINE)
    return dict(zip(names, marks, strict=True))


def equal_lines(text: str) -> list[str]:
    """Return the lines of a program's output that name an equal result."""
    return [line for line in text.splitlines() if line.startswith("equal:")]


def require_mistake(mistakes: Path, kernel: str) -> None:
    """Check a kernel, and compare the findings with the comment of its mistake."""
    completed = run("-m", "simtbed", "check", "--json", mistakes, kernel, code=1)
    report = json.loads(completed.stdout)
    faults = report["kernels"][0]["faults"]
    line, kind, column = expected_findings(mistakes)[kernel]
    matching = [fault for fault in faults if fault["kind"] == kind and fault["line"] == line]
    assert [fault["column"] for fault in matching] == [column], faults


def run(
    *command: str | Path, environment: Mapping[str, str] | None = None, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run `python` with arguments and compare the exit code. The process has no SIMTBED_NUMBA of this one."""
    own = {name: value for name, value in os.environ.items() if name != "SIMTBED_NUMBA"}
    own |= {"NUMBA_DISABLE_PERFORMANCE_WARNINGS": "1", **(environment or {})}
    completed = subprocess.run(
        [sys.executable, *map(str, command)], env=own, capture_output=True, text=True, timeout=300, check=False
    )
    assert completed.returncode == code, f"exit code {completed.returncode}\n{completed.stdout}\n{completed.stderr}"
    return completed
