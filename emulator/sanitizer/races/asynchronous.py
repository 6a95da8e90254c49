"""Messages of asynchronous accesses to shared memory: those that may be pending, and reads of writes without a fence."""

from collections.abc import Sequence

from ...span import Span
from .detect import PENDING_COPY, UNFENCED
from .shadow import PRODUCT


def event(overlap: int, name: str, participle: str, roles: Sequence[int], first: Span) -> str:
    """Return a text about the two accesses. participle: of the second, as "written". roles: of the two."""
    if overlap == PENDING_COPY:
        return f"{name} is {participle} here before its asynchronous copy at {first.place} is waited for"
    reader = _reader(roles)
    if overlap == UNFENCED:
        return f"{name} is read by a {reader} here, and no fence_async follows its write at {first.place}"
    return f"{name} is {participle} here before the {reader} at {first.place} has read it"


def advice(overlap: int, roles: Sequence[int], first: Span) -> str:
    """Return what orders the two accesses."""
    reader = _reader(roles)
    if overlap == UNFENCED:
        return f"write st.fence_async() after line {first.line}, then st.sync() if another thread wrote"
    wait = "st.wgmma_wait()" if reader == "wgmma" else "st.bulk_wait_read()"
    return f"write {wait} after the {reader}, in its thread, then st.sync() for the writes of others"


def _reader(roles: Sequence[int]) -> str:
    """Return the instruction that reads."""
    return "wgmma" if (roles[0] | roles[1]) & PRODUCT else "bulk copy"
