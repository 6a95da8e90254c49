"""Native code of the alignment of a lane's instructions with its source accesses."""

from __future__ import annotations

from typing import NamedTuple

from .. import language as st
from ..language.hints import Global, i32, i64
from ..native import native

NOT_PERFORMED, LOOP_EXIT = -1, -2
"""Markers in place of an access number: a slot without an access; the lane left the loop."""


class VisitedAccesses(NamedTuple):
    """Visited instructions. widths: accesses of each. entries: visits before which lanes enter the loop."""

    widths: Global[i32]
    predicated: Global[i32]
    entries: Global[i32]


@st.device
def _required(v: VisitedAccesses, first: i64, past: i64) -> i64:
    """Return the accesses of some visits."""
    required = i64(0)
    for n in range(first, past):
        required += i64(v.widths[n])
    return required


@st.device
def _has_flag(flags: Global[i32], count: i64) -> bool:
    result = False
    for n in range(count):
        result = result or flags[n] != 0
    return result


@st.device
def _next_slot(sequence: Global[i64], count: i64, at: i64, exact: bool, waits: bool) -> i64:
    """Return the position of the next slot for a visit. exact: only performed accesses. waits: not beyond a loop's exit."""
    while at < count and (sequence[at] < 0 if exact else sequence[at] == LOOP_EXIT and not waits):
        at += 1
    return at


@st.device
def _match_slots(
    sequence: Global[i64], count: i64, at: i64, exact: bool, width: i64, matched: Global[i64], out: i64
) -> i64:
    """Write the accesses of a visit from a position on; return the next position, -1 if they do not fit."""
    filled = i64(0)
    while filled < width:
        if at < count and exact and sequence[at] < 0:
            at += 1
        elif at == count or sequence[at] == LOOP_EXIT:
            return i64(-1)
        else:
            matched[out + filled] = sequence[at]
            filled += 1
            at += 1
    return at


@st.device
def _fits(matched: Global[i64], out: i64, width: i64, predicated: bool) -> bool:
    """Return whether a visit performs all its accesses, or is predicated off."""
    missing = i64(0)
    for k in range(width):
        missing += i64(matched[out + k] == NOT_PERFORMED)
    return missing == 0 or (missing == width and predicated)


@st.device
def _no_accesses(sequence: Global[i64], count: i64, at: i64) -> bool:
    """Return whether no access is performed from a position on."""
    while at < count and sequence[at] < 0:
        at += 1
    return at >= count


@st.device
def _align(sequence: Global[i64], count: i64, v: VisitedAccesses, visits: i64, matched: Global[i64]) -> bool:
    """Match visits with a sequence in order; return whether they fit. Writes the accesses of each visit to `matched`,
    NOT_PERFORMED if predicated off."""
    required, performed, slots = _required(v, 0, visits), i64(0), i64(0)
    for n in range(count):
        performed += i64(sequence[n] >= 0)
        slots += i64(sequence[n] != LOOP_EXIT)
    exact = required == performed
    if not exact and not _has_flag(v.predicated, visits):
        return False
    spare = required - (performed if exact else slots)  # predicated off after the last iteration
    at, out = i64(0), i64(0)
    for n in range(visits):
        width, predicated = i64(v.widths[n]), v.predicated[n] != 0
        at = _next_slot(sequence, count, at, exact, predicated and spare >= width)
        if at == count or sequence[at] == LOOP_EXIT:
            spare -= width
            if not predicated:
                return False
            for k in range(width):
                matched[out + k] = i64(NOT_PERFORMED)
        else:
            at = _match_slots(sequence, count, at, exact, width, matched, out)
            if at < 0 or not _fits(matched, out, width, predicated):
                return False
        out += width
    return _no_accesses(sequence, count, at)


# ------------------------------------------------------------------ executions of a loop
@st.device
def _source_executions(sequence: Global[i64], count: i64) -> tuple[i64, i64]:
    """Return the executions of the source loop with iterations, and those with accesses."""
    nonempty, accessing, n = i64(0), i64(0), i64(0)
    while n < count:
        first, performs = n, False
        while n < count and sequence[n] != LOOP_EXIT:
            performs = performs or sequence[n] >= 0
            n += 1
        nonempty += i64(n > first)
        accessing += i64(performs)
        n += 1
    return nonempty, accessing


@st.device
def _next_execution(sequence: Global[i64], count: i64, at: i64, with_accesses: bool) -> tuple[i64, i64, i64]:
    """Return start and end of the next execution of the source loop, and its accesses. with_accesses: skip others."""
    first, past, performed = at, at, i64(0)
    while performed == 0 and past < count and (with_accesses or first == past):
        while past < count and sequence[past] == LOOP_EXIT:
            past += 1
        first = past
        while past < count and sequence[past] != LOOP_EXIT:
            performed += i64(sequence[past] >= 0)
            past += 1
    return first, past, performed


@st.device
def _switch_off(v: VisitedAccesses, first: i64, past: i64, spare: i64, matched: Global[i64], out: i64) -> i64:
    """Mark the last predicated visits with spare accesses as off, others with 0; return the remaining spare accesses.

    out: end of the accesses of the visits.
    """
    for n in range(past - 1, first - 1, -1):
        width = i64(v.widths[n])
        is_off = v.predicated[n] != 0 and spare >= width
        spare -= width if is_off else i64(0)
        for _ in range(width):
            out -= 1
            matched[out] = i64(NOT_PERFORMED) if is_off else i64(0)
    return spare


@st.device
def _align_execution(
    sequence: Global[i64], at: i64, exact: bool, v: VisitedAccesses, first: i64, past: i64, matched: Global[i64], out: i64
) -> bool:  # fmt: skip
    """Match the visits [first, past) of an execution, where not off; return whether they fit."""
    for n in range(first, past):
        width = i64(v.widths[n])
        if matched[out] != NOT_PERFORMED:
            for k in range(width):
                while exact and sequence[at] < 0:
                    at += 1
                matched[out + k] = sequence[at]
                at += 1
            if not _fits(matched, out, width, v.predicated[n] != 0):
                return False
        out += width
    return True


@st.device
def _align_executions(sequence: Global[i64], count: i64, v: VisitedAccesses, visits: i64, matched: Global[i64]) -> bool:
    """Match each execution of a loop separately.

    In executions with fewer slots than visits the last predicated visits are off: a remainder loop may precede the
    unrolled one. Lanes enter all executions with iterations, or all with accesses.
    """
    executions, first, at, out = i64(1), i64(0), i64(0), i64(0)
    for n in range(i64(1), visits):
        executions += i64(v.entries[n] != 0)
    nonempty, accessing = _source_executions(sequence, count)
    if executions != nonempty and executions != accessing:
        return False
    while first < visits:
        past = first + 1
        while past < visits and v.entries[past] == 0:
            past += 1
        required = _required(v, first, past)
        start, at, performed = _next_execution(sequence, count, at, executions != nonempty)
        exact = required == performed
        spare = i64(0) if exact else required - (at - start)
        if _switch_off(v, first, past, spare, matched, out + required) != 0:
            return False
        if not _align_execution(sequence, start, exact, v, first, past, matched, out):
            return False
        out += required
        first = past
    return _no_accesses(sequence, count, at)


@st.device
def align_loop(sequence: Global[i64], count: i64, v: VisitedAccesses, visits: i64, matched: Global[i64]) -> bool:
    """Match by executions of the loop where its entries are known, else in order; return whether the visits fit."""
    if _has_flag(v.entries, visits) and _align_executions(sequence, count, v, visits, matched):
        return True
    return _align(sequence, count, v, visits, matched)


@native
def align_sequence(sequence: Global[i64], count: i64, v: VisitedAccesses, visits: i64, matched: Global[i64]) -> bool:
    """Match visits with a sequence, as `align_loop`."""
    return align_loop(sequence, count, v, visits, matched)
