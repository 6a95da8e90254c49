"""The run of a built program in this process."""

import ctypes
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ...errors import SimtbedError
from ...escaping import printable
from ...process_signals import ENDING
from .build import Program, built
from .declarations import table_of
from .queues import flush_host_output
from .runtime import Runtime
from .unit import ProgramUnit


def run(program: Program, arguments: Sequence[str], report: Callable[[str], None]) -> NoReturn:
    """Build a program, run its `main` and end this process with its exit code. arguments: after the program's name.

    Raises the errors of `built`, and SimtbedError for a program without `main`.
    """
    _handle_signals(_end, ENDING)
    build = built(program, report)
    folder = f'directory: "{os.getcwd()}"'
    units: dict[str, ProgramUnit] = {}
    for source, module in zip(build.sources, build.modules, strict=True):
        if module not in units:  # linked sources have one module
            units[module] = ProgramUnit(source, module.replace(folder, 'directory: ""'), program.options)
    runtime = Runtime([units[module] for module in build.modules], report)
    table = table_of(runtime.implementations())
    with tempfile.TemporaryDirectory(prefix="simtbed-") as path:
        shim_path, library_path = Path(path, "libsimtbed.so"), Path(path, "program.so")
        shim_path.write_bytes(build.shim)
        library_path.write_bytes(build.library)
        shim = ctypes.CDLL(str(shim_path), ctypes.RTLD_GLOBAL)
        entries = (ctypes.c_void_p * len(table)).in_dll(shim, "simtbed_table")
        for number, entry in enumerate(table):
            entries[number] = ctypes.cast(entry, ctypes.c_void_p)
        library = ctypes.CDLL(str(library_path))
    try:
        main = library.main
    except AttributeError:
        description = printable(f"{os.path.splitext(program.sources[0])[0]}.toml")
        raise SimtbedError(
            f"{printable(', '.join(program.sources))}: no function main; for kernels alone, write their launches in {description}"
        ) from None
    # Python's handlers do not run in native code
    _handle_signals(signal.SIG_DFL, (*ENDING, signal.SIGPIPE, signal.SIGXFSZ))
    words = [word.encode(errors="surrogateescape") for word in (program.sources[0], *arguments)]
    shim.simtbed_run(main, len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None))
    flush_host_output()
    os._exit(3)  # `simtbed_run` does not return


def _handle_signals(handler: Any, numbers: Sequence[int]) -> None:
    """Set the handler of signals that this process does not ignore by the user's wish."""
    for number in numbers:
        if number not in ENDING or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def _end(number: int, frame: object) -> NoReturn:
    """End a build, which removes its files."""
    sys.exit(128 + number)
