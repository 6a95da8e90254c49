"""Excerpts of file contents for messages."""

from __future__ import annotations

from simtbed.escaping import printable


def excerpt(content: bytes) -> str:
    """Return the start of a text, printable and in quotes."""
    return f"'{printable(content[:24].decode('ascii', 'backslashreplace'))}{'...' if len(content) > 24 else ''}'"
