"""`simtbed numba`: a program with its Numba-CUDA kernels on an emulator."""

import os
import sysconfig
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from simtbed import SimtbedError, numba_hook

from ..printing import print_text
from ..targets.running import command_of, run_process
from ..targets.target import CudaFile, CudaProgram, Shipped, find_target
from .options import TargetArguments, TargetProgram
from .parameters import Option, command

LINE = f"import os; os.environ.get({numba_hook.VARIABLE!r}, '0') in ('', '0') or __import__('simtbed.numba_hook')\n"
"""The content of the file in site-packages: Python executes it at its start."""


class Hook(StrEnum):
    """Changes of the file in site-packages."""

    write = "write"
    remove = "remove"


@dataclass(frozen=True, kw_only=True)
class NumbaOptions:
    """The options of `simtbed numba`."""

    hook: Annotated[
        Hook | None,
        Option(
            help="Write or remove a file in site-packages, by which every Python of this environment reads SIMTBED_NUMBA."
        ),
    ] = None


@command
def numba(target: TargetProgram = None, arguments: TargetArguments = (), *, options: NumbaOptions) -> int:
    """Run a program with its Numba-CUDA kernels on an emulator.

    The program is unchanged: its arrays, streams and events are those of Numba, over the memory of the host. Its child processes
    run their kernels on an emulator too. The exit code is that of the program.

    \b
    simtbed numba train.py --epochs 1
    simtbed numba package.module
    simtbed numba --hook write
    """
    if options.hook is not None:
        _change_hook(options.hook)
    if target is None:
        if options.hook is None:
            raise SimtbedError("give a program, or --hook write")
        return 0
    chosen = find_target(target, arguments, emulate="numba")
    if isinstance(chosen, Shipped | CudaFile | CudaProgram):
        raise SimtbedError(f"{chosen} has no kernels of Numba: give a script, package.module or file.py:function")
    environment = {**os.environ}
    numba_hook.request(environment)
    return run_process(command_of(chosen), environment)


def _change_hook(change: Hook) -> None:
    path = Path(sysconfig.get_path("purelib")) / "simtbed_numba.pth"
    try:
        if change is Hook.write:
            path.write_text(LINE)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise SimtbedError(f"{path}: {error.strerror}") from None
    effect = f"{numba_hook.VARIABLE}=1 runs kernels of numba.cuda on an emulator"
    print_text(f"{path}: {f'written; {effect}' if change is Hook.write else 'removed'}")
