"""Native loops over the bytes of text files: newlines, lines, numbers."""

from __future__ import annotations

import simtbed as st
from simtbed import Global, i64, u8, u64
from simtbed.native import native

from .pieces import Bytes

VECTOR = 32
"""Bytes per iteration of a vectorised loop."""


def whole_lines(data: Bytes) -> tuple[int, int]:
    """Return the length and the number of the complete lines: `whole` of `read_pieces` for records of one line."""
    length = int(after_newline(data, len(data), 0))
    return length, int(newlines(data, length))


@native
def newlines(data: Global[u8], length: i64) -> i64:
    count = i64(0)
    for i in range(length):
        count += i64(data[i] == 10)
    return count


@native
def after_newline(data: Global[u8], length: i64, back: i64) -> i64:
    """Return the start of the line with `back` newlines after it, or 0."""
    at = length
    left = back
    while at > 0:
        if data[at - 1] == 10:
            if left == 0:
                return at
            left -= 1
        at -= 1
    return i64(0)


@st.device
def line_end(data: Global[u8], at: i64, length: i64) -> i64:
    """Return the end of the line at `at`: its newline, or the end of the data."""
    while at < length and data[at] != 10:
        at += 1
    return at


@st.device
def long_line_end(data: Global[u8], at: i64, length: i64) -> i64:
    """Return the same as `line_end`, faster for long lines: VECTOR bytes are compared at a time."""
    while at + VECTOR <= length and not newline_in_vector(data, at):
        at += VECTOR
    return line_end(data, at, length)


@st.device
def newline_in_vector(data: Global[u8], at: i64) -> bool:
    """Return whether the next VECTOR bytes contain a newline."""
    ends = False
    for i in range(i64(VECTOR)):
        ends = ends | (data[at + i] == 10)
    return ends


@native
def first_newline(data: Global[u8], length: i64) -> i64:
    """Return the end of the first line."""
    return line_end(data, i64(0), length)


@st.device
def without_return(data: Global[u8], first: i64, end: i64) -> i64:
    """Return the end of a line without a carriage return."""
    return end - 1 if end > first and data[end - 1] == 13 else end


# ------------------------------------------------------------------ writing
@st.device
def copied(data: Global[u8], first: i64, end: i64, to: Global[u8], at: i64) -> i64:
    """Copy bytes; return their end."""
    for i in range(end - first):
        to[at + i] = data[first + i]
    return at + end - first


@st.device
def decimal(number: i64, to: Global[u8], at: i64) -> i64:
    """Write a non-negative integer; return its end."""
    digits = i64(1)
    rest = u64(number) // 10
    while rest != 0:
        digits += 1
        rest //= 10
    left = u64(number)
    for place in range(at + digits - 1, at - 1, -1):
        to[place] = u8(48 + left % 10)
        left //= 10
    return at + digits


@st.device
def signed(number: i64, to: Global[u8], at: i64) -> i64:
    """Write an integer with its sign; return its end."""
    to[at] = 45
    return decimal(abs(number), to, at + i64(number < 0))
