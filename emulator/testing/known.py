"""Known findings: those of a file, each pinned by its line of source and with the reason why it is let pass."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from ..errors import Diagnostic, SimtbedError

FILE = Path(".simtbed", "known.toml")
"""Where they are, from pytest's root folder."""
_KEYS = ("kind", "file", "line", "reason")


@dataclass(frozen=True)
class Pin:
    """kind: of the finding. file: from the root folder, with slashes. line: the text of its line, without the spaces
    around it, so that a pin outlives changes elsewhere. reason: why it is let pass."""

    kind: str
    file: str
    line: str
    reason: str

    def covers(self, found: Diagnostic, root: Path) -> bool:
        """Whether the finding is this one."""
        return (self.kind, self.file, self.line) == _identity(found, root)


def read_pins(root: Path) -> list[Pin]:
    """The pins of a project; none where it has no such file. Raises SimtbedError, one line, where it is not one of pins."""
    path = root / FILE
    return read_file(path) if path.exists() else []


def read_file(path: Path) -> list[Pin]:
    """The pins of a file. Raises SimtbedError, one line, where it is missing or not one of pins."""
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8")).get("known", [])
    except OSError as error:
        raise SimtbedError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise SimtbedError(f"{path}: {error}") from None
    for number, row in enumerate(rows, 1):
        if set(row) != set(_KEYS) or not all(isinstance(text, str) and text.strip() for text in row.values()):
            raise SimtbedError(f"{path}: known finding {number}: expected the texts {', '.join(_KEYS)}")
    return [Pin(**row) for row in rows]


def as_pin(found: Diagnostic, root: Path) -> str:
    """The finding as the file has it, but for the reason."""
    fields = zip(_KEYS, _identity(found, root), strict=False)
    return "\n".join(["[[known]]", *(f"{name} = {json.dumps(text)}" for name, text in fields)])


def _identity(found: Diagnostic, root: Path) -> tuple[str, str, str]:
    file = (
        Path(os.path.relpath(found.span.file, root)).as_posix() if os.path.isabs(found.span.file) else found.span.file
    )
    return found.kind, file, found.span.source.strip()
