"""Fields of a device: their types and ranges, and their values from a user's table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from ..checked import shown
from ..documents import text_of, toml_of
from ..errors import LaunchError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_LARGEST = 1 << 48
"""Upper bound of every value: sums and products of two of them do not overflow."""


Row = TypeVar("Row", bound="DataclassInstance")


@cache
def types(row: Any) -> dict[str, Any]:
    """The type of each field."""
    return get_type_hints(row)


def filled(prefix: str, row: Any, table: dict[str, Any], base: Any) -> dict[str, Any]:
    """Return the fields of `row` from the table; missing keys have the values of `base`, if there is one."""
    hints = types(row)
    names = [f.name for f in fields(row) if f.default is MISSING]
    for key in table:
        if key not in names:
            raise LaunchError(f"{prefix}{shown(key)[1:-1]}: no such key; expected {', '.join(names)}")
    for name in names:
        if name not in table and base is None:
            raise LaunchError(f"{prefix}{name}: missing; expected {_expected(hints[name], prefix + name)}")
    return {
        name: _of_toml(f"{prefix}{name}", hints[name], table[name], getattr(base, name, None))
        if name in table
        else getattr(base, name)
        for name in names
    }


def rows(file: str, row: type[Row], references: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Row]:
    """Return the rows of a TOML file of this folder, by name. `like` names the row of the missing keys.

    references: values by name, of the keys whose value is a name.
    """
    result: dict[str, Row] = {}
    for name, table in toml_of(text_of(Path(__file__).with_name(file))).items():
        base = result[table.pop("like")] if "like" in table else None
        for key, values in (references or {}).items():
            if key in table:
                table[key] = values[table[key]]
        if any(field.name == "name" for field in fields(row)):
            table["name"] = name
        result[name] = row(**filled("", row, table, base))
    return result


def _of_toml(key: str, hint: Any, value: Any, base: Any) -> Any:
    """Convert a value of a table to its field's type: lists to tuples, whole numbers to floats where the field is a float."""
    if isinstance(hint, type) and is_dataclass(hint) and isinstance(value, dict):
        return hint(**filled(f"{key}.", hint, value, base))
    if isinstance(value, list):
        return tuple(value)
    return float(value) if hint is float and type(value) is int and abs(value) <= _LARGEST else value


# Whole numbers that may be 0; all others are sizes, counts or divisors.
_MAY_BE_ZERO = ("shared_reserved", "rates.")


def require(prefix: str, name: str, hint: Any, value: Any) -> None:
    """Raise LaunchError where a field does not have its type or its range."""
    key = prefix + name
    if get_origin(hint) is tuple:
        several = get_args(hint)[-1] is Ellipsis
        fits = isinstance(value, tuple) and (several or len(value) == len(get_args(hint)))
        least = 0 if several or name == "compute_capability" else 1
        fits = fits and all(type(v) is int and least <= v <= _LARGEST for v in value)
    elif hint is int:
        fits = type(value) is int and (0 if key.startswith(_MAY_BE_ZERO) else 1) <= value <= _LARGEST
    elif hint is float:
        fits = type(value) in (int, float) and 0 < value <= _LARGEST and math.isfinite(value)
    else:
        fits = isinstance(value, hint)
    if not fits:
        raise LaunchError(f"{key}: expected {_expected(hint, key)}, got {shown(value)}")


def _expected(hint: Any, key: str) -> str:
    if get_origin(hint) is tuple:
        item_types = get_args(hint)
        several = f"{len(item_types)} whole numbers" if item_types[-1] is not Ellipsis else "a list of whole numbers"
        return (
            "two whole numbers, such as [9, 0]" if len(item_types) == 2 and item_types[-1] is not Ellipsis else several
        )
    whole = "a whole number" if key.startswith(_MAY_BE_ZERO) else "a whole number of at least 1"
    texts = {int: whole, float: "a number above 0", str: "a text", bool: "true or false"}
    return texts.get(hint, "a table")
