"""Entry point of the process of a script whose PyCUDA, CuPy or Numba-CUDA is emulated."""

from __future__ import annotations

import os
import re
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from simtbed import SimtbedError, numba_hook
from simtbed.documents import text_of
from simtbed.escaping import printable
from simtbed.stand_ins.install import LIBRARIES, install

from ..launchers import why_unavailable
from ..printing import print_message
from .uncaught import show_without

EMULATED = (*LIBRARIES, "numba")
_IMPORT = re.compile(rf"^[ \t]*(?:import|from)[ \t]+({'|'.join(LIBRARIES)})\b", re.MULTILINE)
_IMPORT_OF_NUMBA = re.compile(
    r"^[ \t]*from[ \t]+numba[ \t]+import\b[^\n]*\bcuda\b|^[^#\n]*\bnumba\.cuda\b|"
    r"^[ \t]*(?:import|from)[ \t]+numba_cuda_mlir\b",
    re.MULTILINE,
)


def emulated_libraries(path: Path, names: str | None) -> tuple[str, ...]:
    """Return the libraries to emulate for a script.

    names: separated by commas, or none; None for those that the script imports, on a machine without a GPU.
    Raises SimtbedError for unknown names.
    """
    if names is not None:
        chosen = tuple(name for name in names.split(",") if name and name != "none")
        if unknown := [name for name in chosen if name not in EMULATED]:
            raise SimtbedError(f"--emulate {printable(unknown[0])}: there are {', '.join(EMULATED)} and none")
        return chosen
    try:
        text = text_of(path)
        has_numba = not numba_hook.is_excluded() and _IMPORT_OF_NUMBA.search(text)
        imported = (*dict.fromkeys(_IMPORT.findall(text)), *["numba"] * bool(has_numba))
    except (SimtbedError, ValueError):
        return ()
    return imported if imported and why_unavailable("cuda") else ()


def run(names: Sequence[str], path: str, arguments: Sequence[str]) -> None:
    """Run a script as `python` would, with stand-ins for these libraries."""
    show_without(__file__)
    show_without(runpy.run_path.__code__.co_filename)
    print_message(
        f"simtbed: {' and '.join(names)} emulated: kernels run on an emulator (--emulate none: the installed library)"
    )
    install(name for name in names if name in LIBRARIES)
    if "numba" in names:
        numba_hook.request(os.environ)
        numba_hook.enable()
    sys.argv = [path, *arguments]
    sys.path[0] = str(Path(path).resolve().parent)
    runpy.run_path(path, run_name="__main__")
