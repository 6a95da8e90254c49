"""Atomic creation of folders: a folder has its name when it is complete, or it does not exist."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .outputs import SUFFIX
from .signals import defer_signals, forget, register


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder with a temporary name. It gets the name `path` at the end, and is removed after an error or a signal.

    Missing parents are created with it. Raises OSError, and FileExistsError if the path exists.
    """
    first = path  # the first folder that is missing
    while not os.path.lexists(first.parent):
        first = first.parent
    temporary = first.parent / f".simtbed-{os.urandom(8).hex()}{SUFFIX}"
    folder = temporary / path.relative_to(first)
    register(str(temporary))
    try:
        folder.mkdir(parents=True)
        yield folder
        with defer_signals():
            if os.path.lexists(first):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
            os.rename(temporary, first)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        forget(str(temporary))
