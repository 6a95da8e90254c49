"""Numbers of a report and their text."""

from __future__ import annotations

from typing import TypeAlias

Number: TypeAlias = int | float
PRECISION = 4
"""Significant digits of a fraction."""


def text_of_number(value: Number) -> str:
    """Format a number: integers and large values with separators of thousands, fractions with PRECISION digits."""
    if isinstance(value, int) or (value.is_integer() and abs(value) >= 10**PRECISION):
        return f"{int(value):,}"
    if 1e-4 <= abs(value) < 10**PRECISION or not value:
        return f"{value:,.{PRECISION}g}"
    return f"{value:,.0f}" if abs(value) >= 1 else f"{value:.{PRECISION - 1}g}"
