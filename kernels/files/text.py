"""Escaping of file names and file contents for messages."""

from __future__ import annotations


def printable(text: object) -> str:
    """Return the text on one line. Control characters, line ends and invalid characters are escaped as in Python literals."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def excerpt(content: bytes) -> str:
    """Return the start of a text, printable and in quotes."""
    return f"'{printable(content[:24].decode('ascii', 'backslashreplace'))}{'...' if len(content) > 24 else ''}'"
