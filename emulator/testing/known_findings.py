"""Known findings of a project: each is pinned by its line of source, with a reason to accept it."""

import os
from dataclasses import dataclass
from pathlib import Path

from ..documents import require, text_of, toml_of
from ..errors import Diagnostic, SimtbedError
from ..escaping import printable

FILE = Path(".simtbed", "known.toml")
"""The file of pins, relative to pytest's root folder."""
_KEYS = ("kind", "file", "line", "reason")


@dataclass(frozen=True)
class Pin:
    """A known finding. kind: of the finding. file: relative to the root folder, with slashes. line: the text of its line, stripped,
    so that a pin survives changes elsewhere. reason: to accept it."""

    kind: str
    file: str
    line: str
    reason: str

    def covers(self, finding: Diagnostic, root: Path) -> bool:
        """Return whether the pin is of this finding."""
        return (self.kind, self.file, self.line) == _identity(finding, root)


def read_pins(root: Path) -> list[Pin]:
    """Read the pins of a project; empty without a file. Raises SimtbedError, one line, if the file is invalid."""
    path = root / FILE
    return read_file(path) if path.exists() else []


def read_file(path: Path) -> list[Pin]:
    """Read a file of pins. Raises SimtbedError, one line, if it is missing or invalid."""
    from .schemas import KnownFindings  # late: most runs read no known findings

    try:
        content = toml_of(text_of(path))
        require(content, KnownFindings)
    except ValueError as error:
        raise SimtbedError(f"{printable(path)}: {error}") from None
    return [Pin(**row) for row in content.get("known", [])]


def as_pin(finding: Diagnostic, root: Path) -> str:
    """Return the finding in the format of the file, with an empty reason, which the user writes."""
    import tomli_w  # late: only failed tests print findings

    return "[[known]]\n" + tomli_w.dumps(dict(zip(_KEYS, (*_identity(finding, root), ""), strict=True))).rstrip("\n")


def _identity(finding: Diagnostic, root: Path) -> tuple[str, str, str]:
    file = (
        Path(os.path.relpath(finding.span.file, root)).as_posix()
        if os.path.isabs(finding.span.file)
        else finding.span.file
    )
    return finding.kind, file, finding.span.source.strip()
