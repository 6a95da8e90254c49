"""Equivalents of the words in `words.toml`: the source of error messages and docs/porting.md."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Word:
    """A word and its equivalent. theirs: one or more spellings. ours: code; or a sentence with code between backticks."""

    theirs: tuple[str, ...]
    ours: str

    def names(self) -> Iterator[str]:
        """Yield the names under which a kernel would use it; none for non-Python text."""
        for text in self.theirs:
            match = re.match(r"(__\w+|[A-Za-z_]\w+(\.[A-Za-z_]\w*)*(?=$|[(\[]))", text)
            if match:
                yield match[0]


def _section(text: str) -> tuple[Word, ...]:
    """Parse rows of `theirs, theirs -> ours`, with two spaces around the arrow and between synonyms."""
    rows = (line.strip().split("  ->  ") for line in text.strip().splitlines())
    return tuple(Word(tuple(re.split(r"  +", theirs.strip())), ours.strip()) for theirs, ours in rows)


_TEXT = (files(__package__) / "words.toml").read_text("utf-8")
SECTIONS = {origin: _section(rows) for origin, rows in tomllib.loads(_TEXT).items()}
"""The rows of each language."""


@cache
def by_name() -> dict[str, tuple[str, Word]]:
    """Return the origin and the first row of each name."""
    rows: dict[str, tuple[str, Word]] = {}
    for origin, words in SECTIONS.items():
        for word in words:
            for key in word.names():
                rows.setdefault(key, (origin, word))
    return rows
