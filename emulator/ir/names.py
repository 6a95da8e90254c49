"""Names of generated registers and arrays: how they are made, and what a name says.

A name is one text, because it is a key everywhere and appears in the printed IR. It is built and read here alone: the
user's name, then `@3` for the third temporary of an expression, `@callee2` for the second inlined call, `[4]` for an
element of a register array, and `@set` for the flag that says whether such an element was assigned.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_TEXT = re.compile(r"([^@\[]*)((?:@[^@\[]*)*)(?:\[(\d+)\])?(@set)?")


@dataclass(frozen=True)
class Name:
    """user: as the user wrote it. array: of an element, the register array; else the whole name. element: its index.
    temporary: whether it holds an intermediate value."""

    user: str
    array: str
    element: int | None
    temporary: bool

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(text: str) -> Name:
        """What a name says."""
        match = _TEXT.fullmatch(text)
        assert match is not None, text
        user, suffixes, element, _ = match.groups()
        numbered = any(suffix.isdigit() for suffix in suffixes.split("@"))
        return Name(user, user + suffixes, None if element is None else int(element), numbered)


def temporary(stem: str, number: int) -> str:
    """A register for an intermediate value of the frontend."""
    return f"{stem}@{number}"


def in_call(name: str, callee: str, number: int) -> str:
    """A register or array of a device function, in one of its inlined calls."""
    return f"{name}@{callee}{number}"


def element(array: str, index: int) -> str:
    """The register that is an element of a register array."""
    return f"{array}[{index}]"


def elements(array: str, length: int | None) -> list[str]:
    """The registers of a register array."""
    return [element(array, index) for index in range(length or 0)]


def assigned_flag(register: str) -> str:
    """The register that says whether another one was assigned."""
    return f"{register}@set"
