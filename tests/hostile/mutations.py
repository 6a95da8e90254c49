"""Good files made bad: bytes flipped, cut, repeated, replaced by what readers trip over; equal seeds, equal files."""

import random
import re
from collections.abc import Callable

TOKENS = (
    b"", b"0", b"-1", b"+1", b"1e400", b"nan", b"inf", b"-inf", b"1e308", b"1e-320", b"99999999999999999999", b"2147483648", b"0x1f",
    b"\xc2\xb2", b"\xff", b"\xed\xa0\x80", b"\xe2\x80\xae", b"\x00", b"\x1b[31m", b"\r", b"\n", b"\t", b" ", b".", b"*", b"<*>",
    b">", b"@", b"+",
    b"1_000", b"\xef\xbc\x91", b"A" * 300, b"String", b"Float", b"1 1\n", b",", b":", b"#", b"##", b"IDX=999999999", b"\x1f\x8b",
)  # fmt: skip
NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFF00, 0x10000000)


def mutated(good: bytes, seed: int) -> bytes:
    """One to three mutations of a file."""
    draw = random.Random(seed)
    data = good
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        data = draw.choice(MUTATIONS)(data, draw)
    return data


def _flip(data: bytes, draw: random.Random) -> bytes:
    return _put(data, draw, lambda byte: byte ^ 1 << draw.randrange(8))


def _byte(data: bytes, draw: random.Random) -> bytes:
    return _put(data, draw, lambda byte: draw.randrange(256))


def _put(data: bytes, draw: random.Random, change: Callable[[int], int]) -> bytes:
    if not data:
        return data
    at = draw.randrange(len(data))
    return data[:at] + bytes([change(data[at])]) + data[at + 1 :]


def _number(data: bytes, draw: random.Random) -> bytes:
    at, width = draw.randrange(len(data) + 1), draw.choice((1, 2, 4, 8))
    return data[:at] + (draw.choice(NUMBERS) % (1 << 8 * width)).to_bytes(width, "little") + data[at + width :]


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _remove(data: bytes, draw: random.Random) -> bytes:
    begin = draw.randrange(len(data) + 1)
    return data[:begin] + data[begin + draw.choice((1, 2, 7, 50)) :]


def _repeat(data: bytes, draw: random.Random) -> bytes:
    begin = draw.randrange(len(data) + 1)
    end = begin + draw.randrange(60)
    return data[:end] + data[begin:end] * draw.choice((1, 2, 30)) + data[end:]


def _insert(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(TOKENS) + data[at:]


def _field(data: bytes, draw: random.Random) -> bytes:
    """A word between separators becomes another one."""
    words = list(re.finditer(rb"[^\s,:=<>\"]+", data))
    if not words:
        return data
    word = draw.choice(words)
    return data[: word.start()] + draw.choice((*TOKENS, draw.choice(words)[0])) + data[word.end() :]


def _lines(data: bytes, draw: random.Random) -> bytes:
    """A line is lost, doubled, moved or emptied."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at = draw.randrange(len(lines))
    line = lines.pop(at)
    instead = draw.choice(([], [line, line], [b"\n"], [line.strip()], [line.rstrip() + b"\r\n"]))
    return b"".join([*lines[:at], *instead, *lines[at:]])


MUTATIONS = (_flip, _byte, _number, _cut, _remove, _repeat, _insert, _field, _field, _lines)
