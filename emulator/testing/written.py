"""Files written by a test run."""

import os
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Write a file atomically. A path that exists and is no file, such as a pipe, is written to."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
