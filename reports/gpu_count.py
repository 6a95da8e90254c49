"""Number of GPUs that a file is worth: a second context and smaller launches cost more than they save for a small file."""

import os
from contextlib import suppress
from pathlib import Path

BYTES_PER_GPU = 1 << 28
"""Bytes of a file for each GPU, as stored. One H100 processes 63 MB of pairs of 512 bases in 0.85 s after its start, and two
need longer: docs/performance.md."""


def gpus_for_file(path: str | Path | None, gpus: int) -> int:
    """Return the number of GPUs for a file: one for each BYTES_PER_GPU, at least one and at most `gpus`.

    All for a pipe, a missing file and the shipped example (None), whose size is unknown.
    """
    with suppress(OSError, ValueError):
        if path is not None and os.path.isfile(path):
            return max(1, min(gpus, os.path.getsize(path) // BYTES_PER_GPU))
    return gpus
