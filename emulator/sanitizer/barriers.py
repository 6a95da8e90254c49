"""Diagnostics of control flow: divergent barriers, inactive lanes in warp operations, endless loops, assertions."""

from __future__ import annotations

from collections.abc import Collection

from ..errors import Diagnostic
from ..language.intrinsics import WARP_SIZE
from ..machine.device import Device
from ..span import Span


def wants_every_thread(checks: Collection[str], device: Device) -> bool:
    """Whether a barrier must be reached by every thread of its block, those that have returned included.

    From compute capability 7.0 on CUDA counts the threads that have not returned, and so does every engine. Below, it
    documents a barrier for all threads of the block alone; `check="barriers"` holds a kernel for such a device to that.
    """
    return "barriers" in checks and device.warp_synchronous


def divergent(span: Span, where: str, arrived: int, waiting: int, missing: str) -> Diagnostic:
    """A block barrier reached by some of the threads that have not returned."""
    message = f"barrier divergence: {arrived} of {arrived + waiting} threads of the block reach this barrier"
    notes = (
        where,
        f"missing: {missing}",
        "every thread that has not returned must reach it: move it out of the branch",
    )
    return Diagnostic("barrier", message, span, notes)


def returned(span: Span, where: str, arrived: int, gone: int, first: str) -> Diagnostic:
    """A block barrier after threads of the block have returned."""
    message = f"{gone} of {arrived + gone} threads returned before this barrier of their block"
    notes = (
        where,
        f"returned: {first}",
        "below compute capability 7.0 CUDA counts on every thread of the block, from 7.0 on, on those that have not "
        "returned: put the work under a condition, not the return",
    )
    return Diagnostic("barrier", message, span, notes)


def inactive_lanes(span: Span, what: str, where: str, mask: int, missing: int) -> Diagnostic:
    """A warp operation whose mask names lanes that have not returned but are not active."""
    message = f"{what} names lanes that are not active here: {lanes(missing)}"
    notes = (
        where,
        f"mask 0x{mask:08x}; name only lanes that reach this line: mask=st.active_mask(), or move it out of the branch",
    )
    return Diagnostic("convergence", message, span, notes)


def not_in_mask(span: Span, what: str, where: str, mask: int) -> Diagnostic:
    """A warp operation run by a lane its own mask leaves out."""
    return Diagnostic("convergence", f"{what} by a lane that its mask 0x{mask:08x} leaves out", span, (where,))


def reads_inactive(span: Span, where: str, source: int) -> Diagnostic:
    """A shuffle that reads a lane which does not take part."""
    message = f"shuffle reads lane {source}, which is not active here: CUDA leaves the value undefined"
    return Diagnostic("convergence", message, span, (where, "the emulator gives the reading lane its own value"))


def endless(span: Span, where: str, limit: int, stalled: bool = False) -> Diagnostic:
    """A loop that was cut off. stalled: one that works in some iterations, and waited in that many in a row."""
    message = f"this loop ran {limit:,} iterations without {'getting any further' if stalled else 'ending'}"
    advice = "it may wait for a thread that cannot go on (a later block, a lane masked off) or that waits too; or raise step_limit"
    return Diagnostic("step limit", message, span, (where, advice))


def failed(span: Span, where: str, message: str) -> Diagnostic:
    """An assertion of the kernel that does not hold."""
    return Diagnostic("assertion", f"assertion failed{': ' if message else ''}{message}", span, (where,))


def lanes(mask: int) -> str:
    """Lanes of a mask as ranges: 0-3, 8."""
    parts, lane = [], 0
    while lane < WARP_SIZE:
        if mask >> lane & 1:
            first = lane
            while lane + 1 < WARP_SIZE and mask >> (lane + 1) & 1:
                lane += 1
            parts.append(str(first) if first == lane else f"{first}-{lane}")
        lane += 1
    return ", ".join(parts)
