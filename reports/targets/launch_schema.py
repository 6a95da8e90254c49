"""Schema of the description of the launches of a CUDA C++ file."""

from typing import Annotated, Any

import msgspec

Number = bool | int | float
Size = Annotated[int, msgspec.Meta(ge=1, le=(1 << 63) - 1)]
Sizes = Annotated[list[Size], msgspec.Meta(min_length=1, max_length=4)]
Argument = Number | str | list[Any]
Text = Annotated[str, msgspec.Meta(pattern=r"\S")]


class ArrayTable(msgspec.Struct, forbid_unknown_fields=True):
    """An array of a launch."""

    type: str
    shape: Size | Sizes
    values: Number | str | list[Any] = "empty"


class Launch(msgspec.Struct, forbid_unknown_fields=True):
    """A launch of a kernel."""

    kernel: Text
    grid: Size | Sizes
    block: Size | Sizes
    shared: int = 0
    cooperative: bool = False
    args: dict[str, Any] = {}


class Description(msgspec.Struct, forbid_unknown_fields=True):
    """A file that describes launches."""

    launch: Annotated[list[Launch], msgspec.Meta(min_length=1)]
    options: list[Text] = []
