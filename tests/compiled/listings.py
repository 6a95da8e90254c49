"""Synthetic SASS listings for small kernels, each instruction with its source line."""

from typing import Any

import simtbed as st
from simtbed.compiled.instruction_counts import LocatedInstruction
from simtbed.compiled.kernel_launches import KernelLaunches
from simtbed.engines.cuda.sass import Instruction
from simtbed.reports.hardware.recording import RecordingLauncher


def launched(kernel: Any, **args: Any) -> KernelLaunches:
    """Launch a kernel with one warp, with counts."""
    launcher = RecordingLauncher("jit", st.devices.find("H200"))
    launcher.launch(kernel, grid=1, block=32, args=args)
    (launches,) = launcher.kernels
    return launches


def placed(launches: KernelLaunches, *rows: tuple[str, str]) -> list[LocatedInstruction]:
    """Return a listing: instructions at 0x0, 0x10, ..., each with a substring of its printed line, or none."""
    texts = launches.source.text.splitlines()
    lines = [next(n for n, text in enumerate(["", *texts]) if part in text and (n or not part)) for _, part in rows]
    return [
        LocatedInstruction(Instruction(16 * n, text), line)
        for n, ((text, _), line) in enumerate(zip(rows, lines, strict=True))
    ]
