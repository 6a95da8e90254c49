"""Texts of strangers, such as names of files and bytes of them, as they are printed."""

from __future__ import annotations


def printable(text: object) -> str:
    """The text on one line: control characters, line ends and what is no character are escaped, as Python writes them."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def shown(content: bytes) -> str:
    """The beginning of a text in quotes, printable."""
    return f"'{printable(content[:24].decode('ascii', 'backslashreplace'))}{'...' if len(content) > 24 else ''}'"
