"""Names of the machines available for time measurements."""

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
"""Description of the processor on Linux."""


def available() -> dict[Machine, str]:
    """Return the names of the machines, with the number of cores; a GPU only if it can run kernels."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    names = {Machine.core: processor(), Machine.cores: f"{processor()}, {cores} cores"}
    if why_unavailable("cuda") is None:
        from simtbed.engines.cuda.engine import describe

        names[Machine.gpu] = describe()["device"]
    return names


def processor() -> str:
    """Return the name of the processor as reported by the system."""
    with suppress(OSError):
        if match := re.search(rb"^model name\s*: (.+)$", contents(DESCRIPTION), re.MULTILINE):
            return match[1].decode(errors="replace").strip()
    return platform.processor() or platform.machine()
