"""Compiled objects on disk, by key: written whole or not at all, checked when read, made anew when damaged."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from pathlib import Path

_DIGEST = 32


def folder() -> Path:
    """Where objects are kept: SIMTBED_CACHE, or the user's cache folder."""
    if given := os.environ.get("SIMTBED_CACHE"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "simtbed"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "simtbed" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "simtbed"


def load(key: str) -> bytes | None:
    """The object of a key, or None where there is none that is whole."""
    try:
        data = (folder() / f"{key}.o").read_bytes()
    except OSError:
        return None
    digest, code = data[:_DIGEST], data[_DIGEST:]
    return code if hashlib.sha256(code).digest() == digest else None


def save(key: str, code: bytes) -> None:
    """Keep an object. A cache that cannot be written is no error: the object is compiled again next time."""
    try:
        folder().mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder(), suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(temporary, folder() / f"{key}.o")
        except OSError:
            os.unlink(temporary)
    except OSError:
        return
