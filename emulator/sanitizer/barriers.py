"""Diagnostics of control flow: divergent barriers, inactive lanes in warp operations, endless loops, assertions."""

from collections.abc import Collection, Sequence

from ..errors import Diagnostic
from ..ir import nodes as ir
from ..language.intrinsics import WARP_SIZE
from ..language.types import Scalar
from ..machine.device import Device
from ..span import Span


def requires_every_thread(checks: Collection[str], device: Device) -> bool:
    """Return whether every thread of a block must reach a barrier, including threads that have returned.

    From compute capability 7.0 on CUDA counts the threads that have not returned, and so does every engine. For earlier
    devices CUDA requires all threads of the block; `check="barriers"` checks that.
    """
    return "barriers" in checks and device.warp_synchronous


def divergent(span: Span, thread: str, arrived: int, waiting: int, missing: str) -> Diagnostic:
    """Return the diagnostic of a block barrier reached by only some of the threads that have not returned."""
    message = f"barrier divergence: {arrived} of {arrived + waiting} threads of the block reach this barrier"
    notes = (
        thread,
        f"missing: {missing}",
        "every thread that has not returned must reach it equally often: move it out of branches and loops that depend on the "
        "thread",
    )
    return Diagnostic("barrier", message, span, notes)


def returned(span: Span, thread: str, arrived: int, returned_threads: int, first: str) -> Diagnostic:
    """Return the diagnostic of a block barrier after threads of the block have returned."""
    message = f"{returned_threads} of {arrived + returned_threads} threads returned before this barrier of their block"
    notes = (
        thread,
        f"returned: {first}",
        "below compute capability 7.0 CUDA counts on every thread of the block, from 7.0 on, on those that have not "
        "returned: put the work under a condition, not the return",
    )
    return Diagnostic("barrier", message, span, notes)


def inactive_lanes(span: Span, what: str, thread: str, mask: int, missing: int) -> Diagnostic:
    """Return the diagnostic of a warp operation whose mask names inactive lanes that have not returned."""
    message = f"{what} names lanes that are not active here: {lanes(missing)}"
    note = f"mask 0x{mask:08x}; {_LANE_ADVICE.get(what, 'a vote of fewer lanes: mask=st.ballot(condition), computed before the branch')}"
    return Diagnostic("convergence", message, span, (thread, f"{note}; or move it out of the branch"))


_LANE_ADVICE = {
    "shuffle": "if every lane that is read takes the branch: mask=st.ballot(condition), computed before the branch",
    "syncwarp": "a smaller mask orders its own lanes only: st.ballot(condition), computed before the branch",
}


def not_in_mask(span: Span, what: str, thread: str, mask: int) -> Diagnostic:
    """Return the diagnostic of a warp operation by a lane outside its own mask."""
    return Diagnostic("convergence", f"{what} by a lane that its mask 0x{mask:08x} leaves out", span, (thread,))


def reads_inactive(span: Span, thread: str, source: int) -> Diagnostic:
    """Return the diagnostic of a shuffle from an inactive lane."""
    message = f"shuffle reads lane {source}, which is not active here: CUDA leaves the value undefined"
    return Diagnostic("convergence", message, span, (thread, "the emulator gives the reading lane its own value"))


def endless(span: Span, thread: str, limit: int, stalled: bool = False) -> Diagnostic:
    """Return the diagnostic of a loop that exceeded its limit. stalled: in consecutive iterations that only wait."""
    message = f"this loop ran {limit:,} iterations without {'getting any further' if stalled else 'ending'}"
    advice = "it may wait for a thread that cannot proceed (a later block, a lane masked off) or that waits too; or raise step_limit"
    return Diagnostic("step limit", message, span, (thread, advice))


def asserted_values(stmt: ir.Assert) -> tuple[ir.Expr, ...]:
    """Return the expressions with values in the diagnostic of a failed assertion."""
    return (*(item for item in stmt.items if not isinstance(item, str)), *stmt.shown)


def failed(stmt: ir.Assert, thread: str, values: Sequence[bool | int | float]) -> Diagnostic:
    """Return the diagnostic of a failed assertion of the kernel. values: of `asserted_values`."""
    texts = [_number(e.type, value) for e, value in zip(asserted_values(stmt), values, strict=True)]
    count = len(texts) - len(stmt.shown)
    inserted = iter(texts[:count])
    message = "".join(item if isinstance(item, str) else next(inserted) for item in stmt.items) or stmt.message
    shown = ", ".join(f"{e.span.text} = {text}" for e, text in zip(stmt.shown, texts[count:], strict=True))
    notes = (thread, shown) if shown else (thread,)
    return Diagnostic("assertion", f"assertion failed{': ' if message else ''}{message}", stmt.span, notes)


def _number(type: object, value: bool | int | float) -> str:
    """Return the shortest text of a number of a type."""
    return str(type.dtype.type(value)) if isinstance(type, Scalar) and type.is_float else str(value)


def lanes(mask: int) -> str:
    """Return the lanes of a mask as ranges: 0-3, 8."""
    ranges, lane = [], 0
    while lane < WARP_SIZE:
        if mask >> lane & 1:
            first = lane
            while lane + 1 < WARP_SIZE and mask >> (lane + 1) & 1:
                lane += 1
            ranges.append(str(first) if first == lane else f"{first}-{lane}")
        lane += 1
    return ", ".join(ranges)
