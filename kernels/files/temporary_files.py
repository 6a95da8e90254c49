"""Temporary files without a name: the system removes them when they are closed or the process ends."""

from __future__ import annotations

import io
import os
import tempfile
from typing import Any

from .paths import failure


class _Raw(io.FileIO):
    """A temporary file whose errors name it as such."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise failure(_NAME, error) from None


_NAME = "temporary file (TMPDIR names the folder)"


def temporary_file() -> io.BufferedRandom:
    """Open an empty file for writing and reading. Opening and writing raise DiskError or SimtbedError on a full disk."""
    try:
        with tempfile.TemporaryFile() as file:
            return io.BufferedRandom(_Raw(os.dup(file.fileno()), "w+b"), 1 << 18)
    except OSError as error:
        raise failure(_NAME, error) from None
