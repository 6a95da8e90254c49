"""Text of an array element, indexed as in the source."""

from collections.abc import Mapping
from typing import Protocol

from ..language.types import Array
from .bounds import user_name


class Form(Protocol):
    """Extents and strides by dimension, in elements."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def strides(self) -> tuple[int, ...]: ...


Forms = Mapping[str, Form]
"""Forms of the global arrays of a launch, by name."""


def element(array: str, type: Array, index: int, forms: Forms) -> str:
    """Return `x[1, 2]` for an element, given its flat index."""
    if array in forms:
        shape, strides = forms[array].shape, forms[array].strides
    else:
        shape = type.shape or (0,)
        strides = tuple(_product(shape[d + 1 :]) for d in range(len(shape)))
    indices, rest = [0] * len(shape), index
    if len(shape) == 1 and strides[0] <= 1:
        return f"{user_name(array)}[{index}]"
    for dimension in sorted(range(len(shape)), key=lambda d: -strides[d]):
        if strides[dimension] and shape[dimension] > 1:
            indices[dimension], rest = divmod(rest, strides[dimension])
    return f"{user_name(array)}[{', '.join(map(str, indices))}]"


def _product(extents: tuple[int, ...]) -> int:
    total = 1
    for extent in extents:
        total *= extent
    return total
