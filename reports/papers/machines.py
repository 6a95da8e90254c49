"""Which machines are here to take times on, and what they are called."""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from pathlib import Path

from simtbed.kernels.files import contents

from ..launchers import why_unavailable
from .measured import Machine

DESCRIPTION = Path("/proc/cpuinfo")
"""Where Linux describes the processor."""


def here() -> dict[Machine, str]:
    """The names of the machines, with the number of cores; a GPU only where one can run kernels."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    found = {Machine.core: processor(), Machine.cores: f"{processor()}, {cores} cores"}
    if why_unavailable("cuda") is None:
        from simtbed.engines.cuda.engine import describe

        found[Machine.gpu] = describe()["device"]
    return found


def processor() -> str:
    """The processor's name as the system has it."""
    with suppress(OSError):
        if named := re.search(rb"^model name\s*: (.+)$", contents(DESCRIPTION), re.MULTILINE):
            return named[1].decode(errors="replace").strip()
    return platform.processor() or platform.machine()
