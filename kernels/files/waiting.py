"""A temporary file without a name: gone when it is closed, and when the process ends however it does."""

from __future__ import annotations

import io
import os
import tempfile
from typing import Any

from .places import failure


class _Raw(io.FileIO):
    """Its errors say that it is the temporary file that failed."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise failure(_NAME, error) from None


_NAME = "temporary file (TMPDIR names the folder)"


def temporary() -> io.BufferedRandom:
    """An empty file to write and read. Raises DiskError or SimtbedError where there is no room, here or later."""
    try:
        with tempfile.TemporaryFile() as made:
            return io.BufferedRandom(_Raw(os.dup(made.fileno()), "w+b"), 1 << 18)
    except OSError as error:
        raise failure(_NAME, error) from None
