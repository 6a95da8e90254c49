"""Validators of a JSON document: each checks one value, and raises ValueError with its path."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..checked import shown

Form = Callable[[Any, str], None]
"""Checks a value, given its path. Raises ValueError."""
MOST = 1 << 53
"""The largest integer that a double represents exactly with all smaller ones."""


def _require(right: bool, expected: str, content: Any, at: str) -> None:
    if not right:
        raise ValueError(f"{at}: expected {expected}, not {shown(content)}")


def any_value(content: Any, at: str) -> None:
    """Accept any value."""


def text(content: Any, at: str) -> None:
    _require(isinstance(content, str), "a text", content, at)


def number(content: Any, at: str) -> None:
    """Accept a finite number of at least 0."""
    fits = isinstance(content, int | float) and not isinstance(content, bool) and 0 <= content < math.inf
    _require(fits, "a number", content, at)


def whole(most: int = MOST, least: int = 0) -> Form:
    def check(content: Any, at: str) -> None:
        fits = isinstance(content, int) and not isinstance(content, bool) and least <= content <= most
        _require(fits, f"a whole number from {least} to {most:,}", content, at)

    return check


def several(form: Form, count: int | None = None) -> Form:
    """Return a validator of lists whose items have one form, of `count` items if given."""

    def check(content: Any, at: str) -> None:
        fits = isinstance(content, list) and (count is None or len(content) == count)
        _require(fits, "a list" if count is None else f"a list of {count:,}", content, at)
        for place, item in enumerate(content):
            form(item, f"{at}[{place}]")

    return check


def sequence(*forms: Form) -> Form:
    """Return a validator of lists with a form for each item."""

    def check(content: Any, at: str) -> None:
        _require(isinstance(content, list) and len(content) == len(forms), f"a list of {len(forms)}", content, at)
        for place, (form, item) in enumerate(zip(forms, content, strict=True)):
            form(item, f"{at}[{place}]")

    return check


def table(form: Form) -> Form:
    """Return a validator of objects whose values have one form."""

    def check(content: Any, at: str) -> None:
        _require(isinstance(content, dict), "an object", content, at)
        for key, value in content.items():
            form(value, f"{at}.{key}")

    return check


def record(forms: Mapping[str, Form]) -> Form:
    """Return a validator of objects with exactly these keys."""

    def check(content: Any, at: str) -> None:
        _require(isinstance(content, dict), "an object", content, at)
        for key in forms.keys() | content.keys():
            if key not in forms or key not in content:
                raise ValueError(f"{at}: {'no key' if key in forms else 'an unknown key'} {shown(key)}")
        for key, form in forms.items():
            form(content[key], f"{at}.{key}")

    return check


def maybe(form: Form) -> Form:
    """Return a validator of values of a form, or null."""

    def check(content: Any, at: str) -> None:
        if content is not None:
            form(content, at)

    return check
