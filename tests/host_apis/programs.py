"""Texts of whole CUDA C++ programs, and their run under a command."""

import subprocess
import sys
from pathlib import Path

from tests.texts import texts

TEXTS = texts("host_apis/programs.cu")

CHECKED = TEXTS["checked calls"]

VECTOR_ADD = TEXTS["vector add"]

MANY_FUNCTIONS = TEXTS["many functions"]


ARRAYS_AND_GRAPHS = CHECKED + TEXTS["arrays and graphs"]

POINTERS = CHECKED + TEXTS["pointers"]


def run(
    folder: Path, text: str, *arguments: str, command: str = "check", options: tuple[str, ...] = (), input: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a program under a command of simtbed, in a folder. options: of the command. input: on stdin."""
    (folder / "program.cu").write_text(text)
    words = [sys.executable, "-m", "simtbed", command, *options, "program.cu", *arguments]
    return subprocess.run(words, cwd=folder, input=input, capture_output=True, text=True, timeout=600, check=False)
