"""Loops over the bytes of any text file, compiled: newlines, lines, numbers."""

from __future__ import annotations

import simtbed as st
from simtbed import Global, i64, u8, u64
from simtbed.native import native

from .piecewise import Bytes

VECTOR = 32
"""Bytes that a loop takes at a time, so that its code is vectors from its first byte to its last."""


def whole_lines(data: Bytes) -> tuple[int, int]:
    """The length of the lines that are whole, and how many they are: what `pieces` asks for where a record is a line."""
    length = int(after_newline(data, len(data), 0))
    return length, int(newlines(data, length))


@native
def newlines(data: Global[u8], length: i64) -> i64:
    found = i64(0)
    for i in range(length):
        found += i64(data[i] == 10)
    return found


@native
def after_newline(data: Global[u8], length: i64, back: i64) -> i64:
    """Where the line begins that has `back` newlines after it and one before, or 0."""
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
    """Where the line ends that `at` is in: at its newline, or behind the last byte."""
    while at < length and data[at] != 10:
        at += 1
    return at


@st.device
def long_line_end(data: Global[u8], at: i64, length: i64) -> i64:
    """As `line_end`, faster where lines are long: VECTOR bytes are compared at a time."""
    while at + VECTOR <= length and not newline_in_vector(data, at):
        at += VECTOR
    return line_end(data, at, length)


@st.device
def newline_in_vector(data: Global[u8], at: i64) -> bool:
    """Whether a line ends in the next VECTOR bytes."""
    found = False
    for i in range(i64(VECTOR)):
        found = found | (data[at + i] == 10)
    return found


@native
def first_newline(data: Global[u8], length: i64) -> i64:
    """Where the first line ends."""
    return line_end(data, i64(0), length)


@st.device
def without_return(data: Global[u8], first: i64, end: i64) -> i64:
    """The end of a line without the carriage return of another system."""
    return end - 1 if end > first and data[end - 1] == 13 else end


# ------------------------------------------------------------------ writing
@st.device
def copied(data: Global[u8], first: i64, end: i64, to: Global[u8], at: i64) -> i64:
    """Copy bytes; where they end."""
    for i in range(end - first):
        to[at + i] = data[first + i]
    return at + end - first


@st.device
def decimal(number: i64, to: Global[u8], at: i64) -> i64:
    """Write a whole number, not negative; where it ends."""
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
    """Write a whole number with its minus; where it ends."""
    to[at] = 45
    return decimal(abs(number), to, at + i64(number < 0))
