"""Texts of tests: sections of a `.cu`, `.ll`, `.sass` or `.txt` file beside the tests, under the names in their first lines."""

import re
from pathlib import Path


def texts(file: str) -> dict[str, str]:
    """Return the sections of a file, by name. file: below tests/. A section starts with the line `//// name`, or `;;;; name`."""
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    _, *sections = re.split(r"^(?:////|;;;;) (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(sections[::2], sections[1::2], strict=True))
