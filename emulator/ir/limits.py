"""What a kernel may have at most: in CUDA on every device, or here, so that no compiler runs for ever."""

from __future__ import annotations

from ..language.types import Array, Space

MOST_STATEMENTS = 1 << 14
"""Of a kernel, calls inlined and loops unrolled: more than ten times the largest kernel shipped here."""
DEEPEST_CALLS = 32
"""Calls of device functions inside each other."""

CAPACITY: dict[Space, tuple[int, str, str]] = {
    "register": (1 << 12, "registers in arrays", "keep them in st.local(...) or st.shared(...)"),
    "local": (512 * 1024, "bytes of local memory a thread", "keep them in a Global array, a part for each thread"),
    "constant": (64 * 1024, "bytes of constant tables", "give the table as a Global array"),
}
"""By memory, what the arrays of a kernel may have together, of what, and what to do instead. Local and constant memory
are CUDA's limits; a GPU has 255 registers a thread. What shared memory may have, the device says."""


def array_size(type: Array) -> int:
    """What an array takes of its memory's room."""
    return (type.length or 0) * (1 if type.space == "register" else type.element.size)


def over_capacity(space: Space, amount: int) -> tuple[str, str] | None:
    """What a message says of an amount above a memory's room, and its advice; None where there is room."""
    if space not in CAPACITY or amount <= CAPACITY[space][0]:
        return None
    most, what, advice = CAPACITY[space]
    number = f"{amount:,}" if amount < 1 << 64 else "more than 2**64"
    return f"{number} {what}: a kernel has at most {most:,}", advice
