"""What the engines compiled, on disk by name: written whole or not at all, checked when read, made anew when damaged."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

_DIGEST = 32
_OTHERS = ("kernels", "oracles", "reports")
"""Folders of an installed simtbed that the emulator does not depend on."""


def folder() -> Path:
    """Where objects are kept: SIMTBED_CACHE, or the user's cache folder."""
    if given := os.environ.get("SIMTBED_CACHE"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "simtbed"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "simtbed" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "simtbed"


@cache
def edition() -> str:
    """Which edition of the emulator this is: the sizes and times of its source files, which decide what it compiles."""
    root = Path(__file__).parent
    names = [p for p in root.iterdir() if p.name not in _OTHERS]
    sources = [file for p in names for file in (p.rglob("*.py") if p.is_dir() else [p])]
    files = sorted((str(p.relative_to(root)), p.stat()) for p in sources if p.suffix == ".py")
    return hashlib.sha256(repr([(name, s.st_size, s.st_mtime_ns) for name, s in files]).encode()).hexdigest()


def load(name: str) -> bytes | None:
    """What is kept under a name, or None where there is nothing that is whole."""
    try:
        data = (folder() / name).read_bytes()
    except OSError:
        return None
    digest, content = data[:_DIGEST], data[_DIGEST:]
    return content if hashlib.sha256(content).digest() == digest else None


def save(name: str, content: bytes) -> None:
    """Keep something. A cache that cannot be written is no error: it is compiled again next time."""
    try:
        folder().mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder(), suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            os.replace(temporary, folder() / name)
        except OSError:
            os.unlink(temporary)
    except OSError:
        return
