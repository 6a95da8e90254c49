"""Poison: the value of the elements of `empty` arrays until a kernel writes them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..language.types import BOOL, Scalar

Buffer = np.ndarray[Any, np.dtype[Any]]

FLOAT_BYTE, INTEGER_BYTE = 0xFF, 0xCD
"""The byte repeated in each element: a quiet NaN of every float type; integers far from 0, 1 and -1."""
SECOND_FLOAT_BYTE, SECOND_INTEGER_BYTE = 0xFE, 0x9A
"""The bytes of the second pattern: an unwritten element differs between launches with the two."""


def poison(scalar: Scalar, second: bool = False) -> Buffer:
    """Return the poison of a scalar type as an array of shape (). A bool is True: no other byte but zero is one.

    second: return the second pattern, which differs in every bit pattern from the first.
    """
    if scalar is BOOL:
        return np.full((), not second, scalar.dtype)
    floats = (FLOAT_BYTE, SECOND_FLOAT_BYTE)[second]
    byte = floats if scalar.kind == "float" else (INTEGER_BYTE, SECOND_INTEGER_BYTE)[second]
    return np.full(scalar.size, byte, np.uint8).view(scalar.dtype).reshape(())


def poison_record(dtype: np.dtype[Any], components: Iterable[tuple[tuple[str, ...], Scalar]]) -> Buffer:
    """Return one struct of a dtype with poison in each component: path of keys, and type."""
    record = np.zeros((), dtype)
    for (*outer, last), scalar in components:
        owner = record
        for key in outer:
            owner = owner[key]
        owner[last] = poison(scalar)
    return record
