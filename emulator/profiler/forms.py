"""The forms of parts of a JSON document: each looks at what is there, and says where it is something else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..checked import shown

Form = Callable[[Any, str], None]
"""Looks at a part, of which it is given the place. Raises ValueError."""
MOST = 1 << 53
"""The largest whole number that every reader of JSON knows to the last digit."""


def _require(right: bool, expected: str, content: Any, at: str) -> None:
    if not right:
        raise ValueError(f"{at}: expected {expected}, not {shown(content)}")


def anything(content: Any, at: str) -> None:
    """Whatever is looked at elsewhere."""


def text(content: Any, at: str) -> None:
    _require(isinstance(content, str), "a text", content, at)


def number(content: Any, at: str) -> None:
    """A finite number of at least 0."""
    fits = isinstance(content, int | float) and not isinstance(content, bool) and 0 <= content < math.inf
    _require(fits, "a number", content, at)


def whole(most: int = MOST, least: int = 0) -> Form:
    def look(content: Any, at: str) -> None:
        fits = isinstance(content, int) and not isinstance(content, bool) and least <= content <= most
        _require(fits, f"a whole number from {least} to {most:,}", content, at)

    return look


def several(form: Form, count: int | None = None) -> Form:
    """A list of parts of one form, of a length where one is said."""

    def look(content: Any, at: str) -> None:
        fits = isinstance(content, list) and (count is None or len(content) == count)
        _require(fits, "a list" if count is None else f"a list of {count:,}", content, at)
        for place, one in enumerate(content):
            form(one, f"{at}[{place}]")

    return look


def sequence(*forms: Form) -> Form:
    """A list with a form for each part."""

    def look(content: Any, at: str) -> None:
        _require(isinstance(content, list) and len(content) == len(forms), f"a list of {len(forms)}", content, at)
        for place, (form, one) in enumerate(zip(forms, content, strict=True)):
            form(one, f"{at}[{place}]")

    return look


def table(form: Form) -> Form:
    """An object whose values have one form."""

    def look(content: Any, at: str) -> None:
        _require(isinstance(content, dict), "an object", content, at)
        for key, value in content.items():
            form(value, f"{at}.{key}")

    return look


def record(forms: Mapping[str, Form]) -> Form:
    """An object with these keys and no others."""

    def look(content: Any, at: str) -> None:
        _require(isinstance(content, dict), "an object", content, at)
        for key in forms.keys() | content.keys():
            if key not in forms or key not in content:
                raise ValueError(f"{at}: {'no key' if key in forms else 'an unknown key'} {shown(key)}")
        for key, form in forms.items():
            form(content[key], f"{at}.{key}")

    return look


def maybe(form: Form) -> Form:
    """A part of a form, or null."""

    def look(content: Any, at: str) -> None:
        if content is not None:
            form(content, at)

    return look
