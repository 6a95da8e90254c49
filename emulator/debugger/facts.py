"""Facts of a block as text: values by lane, elements of an array, the accesses to an element."""

import re
from collections.abc import Iterable, Mapping, Sequence
from types import FrameType
from typing import Any

import numpy as np

from ..engines.python.access import memory_key
from ..engines.python.expressions import flat
from ..engines.python.threads import Access, Fault, Thread
from ..errors import SimtbedError
from ..escaping import printable
from ..ir import nodes as ir
from ..language.intrinsics import WARP_SIZE
from ..sanitizer.places import Dim3, thread_text

COLUMNS = 8
"""Elements or lanes in a line."""
MOST_ACCESSES = 8
"""Accesses to an element that are printed before and after a stop."""


def linear_index(name: str, place: str | int | tuple[int, ...], extents: Dim3) -> int:
    """Return the linear index of a block or a thread, given as an index or as x,y,z. Raises SimtbedError with the name."""
    text = place if isinstance(place, str) else ",".join(map(str, place if isinstance(place, tuple) else (place,)))
    words = [word.strip() for word in text.strip("() ").split(",")]
    values = [int(word) for word in words if word.isdecimal()]
    x, y, z = extents
    if len(values) == len(words) == 1 and values[0] < x * y * z:
        return values[0]
    if len(values) == len(words) in (2, 3) and all(v < n for v, n in zip(values, extents, strict=False)):
        return values[0] + x * values[1] + (x * y * values[2] if len(values) == 3 else 0)
    raise SimtbedError(f"{name} {printable(text)}: expected an index below {x * y * z}, or x,y,z below {extents}")


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as text: "0-15, 17"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def lane_table(values: Mapping[int, str]) -> str:
    """Return the values of the 32 lanes, eight in a line; "-" for a lane without one."""
    texts = [values.get(lane, "-") for lane in range(WARP_SIZE)]
    return _table(texts, range(0, WARP_SIZE, COLUMNS), "lane ")


def memory_table(value: Any) -> str:
    """Return the elements of an array, eight in a line, with the index of the first in the expression."""
    elements = [str(item) for item in np.asarray(value).reshape(-1)]
    return _table(elements, range(0, len(elements), COLUMNS), "")


def _table(texts: Sequence[str], starts: range, word: str) -> str:
    width = max(map(len, texts), default=0)
    label = len(str(max(starts, default=0)))
    return "\n".join(
        f"{word}{start:>{label}}: " + " ".join(f"{text:>{width}}" for text in texts[start : start + COLUMNS])
        for start in starts
    )


def element_of(text: str, frame: FrameType, thread: Thread) -> tuple[tuple[Any, ...], int]:
    """Return the key of an array and the flat index of the element that an expression such as `a[5]` names.

    Raises ValueError for another expression, IndexError outside the array, and the errors of the index.
    """
    match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*\[(.*)\]\s*", text, re.DOTALL)
    if match is None or flat(match[1]) not in frame.f_locals:
        raise ValueError("expected an element of an array of the kernel, such as watch a[5]")
    memory, shown = frame.f_locals[flat(match[1])], frame.f_locals[match[1]]
    index = eval(match[2], frame.f_globals, frame.f_locals)
    positions = [int(i) for i in (index if isinstance(index, tuple) else (index,))]
    shown[tuple(positions)]  # raises IndexError
    dimensions = zip(positions, shown.shape, shown.strides, strict=False)
    start = shown.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    offset = start + sum((position % extent) * stride for position, extent, stride in dimensions)
    origin = thread.block.launch.origins[id(memory)]
    return memory_key(thread, origin), offset // memory.strides[0]


class History:
    """The accesses of a block to one element. now: the number of accesses before the stop."""

    def __init__(self, memory: tuple[Any, ...], index: int) -> None:
        self.memory, self.index = memory, index
        self.accesses: list[Access] = []
        self.now = 0

    def access(self, access: Access) -> Fault | None:
        """Receive an access."""
        if (access.memory, access.index) == (self.memory, self.index):
            self.accesses.append(access)
        return None

    @property
    def before(self) -> list[Access]:
        """The last write before the stop, and the accesses since."""
        accesses = self.accesses[: self.now]
        writes = [number for number, access in enumerate(accesses) if not isinstance(access.node, ir.Load)]
        return accesses[writes[-1] :] if writes else accesses

    @property
    def after(self) -> list[Access]:
        """The accesses after the stop."""
        return self.accesses[self.now :]


def history_text(history: History, grid: Dim3, block: Dim3) -> str:
    """Return the accesses to an element before and after a stop, one in a line."""
    before = [] if any(not isinstance(a.node, ir.Load) for a in history.before) else ["no write in this block before"]
    before += _lines(history.before, grid, block)
    return "\n".join([*before, "-- the stop --", *_lines(history.after, grid, block)])


def _lines(accesses: Sequence[Access], grid: Dim3, block: Dim3) -> list[str]:
    lines = [_line(access, grid, block) for access in accesses[:MOST_ACCESSES]]
    more = len(accesses) - MOST_ACCESSES
    return [*lines, f"{more} more accesses"] if more > 0 else lines


def _line(access: Access, grid: Dim3, block: Dim3) -> str:
    word = "reads" if isinstance(access.node, ir.Load) else "writes" if isinstance(access.node, ir.Store) else "updates"
    value = "" if access.value is None else f" {access.value}"
    place = f"{access.span.place}: {access.span.source.strip()}"
    return f"{thread_text(access.block, access.thread, grid, block, 0)} {word}{value}: {place}"
