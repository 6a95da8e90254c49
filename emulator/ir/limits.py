"""Limits of a kernel: CUDA's on every device, and those of the emulator that bound compile time."""

from __future__ import annotations

from ..language.types import Array, Space

MOST_STATEMENTS = 1 << 14
"""Of a kernel, calls inlined and loops unrolled: more than ten times the largest kernel shipped here."""
MOST_OF_COMPILERS = 1 << 16
"""Of a kernel without calls, which another compiler may have inlined and unrolled."""
DEEPEST_CALLS = 32
"""Calls of device functions inside each other."""

CAPACITY: dict[Space, tuple[int, str, str]] = {
    "register": (1 << 12, "registers in arrays", "keep them in st.local(...) or st.shared(...)"),
    "local": (512 * 1024, "bytes of local memory a thread", "keep them in a Global array, a part for each thread"),
    "constant": (64 * 1024, "bytes of constant tables", "give the table as a Global array"),
}
"""By memory space: the limit on the arrays of a kernel together, its unit, and advice. The limits of local and constant memory are
CUDA's; a GPU has 255 registers a thread. The device limits shared memory."""


def array_size(type: Array) -> int:
    """Return an array's size in the unit of its memory space."""
    return (type.length or 0) * (1 if type.space == "register" else type.element.size)


def over_capacity(space: Space, amount: int) -> tuple[str, str] | None:
    """Return the message and the advice for an amount above the limit of a memory space; None below it."""
    if space not in CAPACITY or amount <= CAPACITY[space][0]:
        return None
    most, what, advice = CAPACITY[space]
    number = f"{amount:,}" if amount < 1 << 64 else "more than 2**64"
    return f"{number} {what}: a kernel has at most {most:,}", advice
