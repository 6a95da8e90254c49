"""Whole files: plain or gzip in, all or nothing out."""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from simtbed import SimtbedError

from .family import InputError


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What goes wrong with a file, or with what is packed in it, as InputError."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: damaged or truncated: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def contents(path: Path) -> bytes:
    """The bytes of a file, unpacked if it is gzip. Raises InputError."""
    with reading(path):
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Another name in the same folder, renamed to `path` if all goes well and removed otherwise. What is no file (a
    pipe, a terminal, /dev/null) cannot be replaced: there it is `path` itself. Raises SimtbedError."""
    special = path.exists() and not path.is_file()
    unfinished = path if special else path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        try:
            yield unfinished
            if not special:
                os.replace(unfinished, path)
        finally:
            if not special:
                unfinished.unlink(missing_ok=True)
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.filename not in (None, str(path), str(unfinished)):
            raise  # of a reader that has seen enough, or of another file
        raise SimtbedError(f"{path}: cannot be written: {error.strerror}") from None


def write(path: Path, text: Iterable[str | bytes]) -> None:
    """Write a whole file or none: under another name first, then renamed. Raises SimtbedError."""
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        file.writelines(part.encode() if isinstance(part, str) else part for part in text)


def shown(content: bytes) -> str:
    """The beginning of a text in quotes, printable."""
    text = content[:24].decode("ascii", "backslashreplace")
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return f"'{text}{'...' if len(content) > 24 else ''}'"
