"""Programs of Numba-CUDA in processes of their own, under commands of simtbed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent
PROGRAMS, MISTAKES = FOLDER / "programs.py", FOLDER / "mistakes.py"


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
