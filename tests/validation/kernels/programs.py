"""Numbers and strings: programs of a stack machine, long products, decimals, dates, curves, distances, suffixes, matches."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f64, i16, i32, i64, u8, u32, u64

from .kernel import Args, ValidationKernel, Values, cover, draw, ints, words, zeros

PUSH, INPUT, ADD, SUBTRACT, MULTIPLY, SWAP, DOUBLE, TURNS, AGAIN, HALT = range(10)
PRIME = 2**255 - 19
LIMBS = tuple(PRIME >> 32 * k & 0xFFFFFFFF for k in range(8))
INVERSE = -pow(PRIME, -1, 2**32) % 2**32
POWERS = tuple(10.0**k for k in range(10))


@st.kernel
def stack_machine(
    code: Global[i16], start: Global[i32], which: Global[i32], x: Global[i64], out: Global[i64], n: i32, DEPTH: Const
) -> None:
    """out[i] = the top of the stack after program which[i] on x[i]; a program may repeat one of its sections."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    stack = st.local(u64, DEPTH)
    at, top, turns = start[which[i]], 0, 0
    while True:
        word = i32(code[at])
        at += 1
        if word == PUSH:
            stack[top] = u64(code[at])
            top += 1
            at += 1
        elif word == INPUT:
            stack[top] = u64(x[i])
            top += 1
        elif word == ADD:
            top -= 1
            stack[top - 1] += stack[top]
        elif word == SUBTRACT:
            top -= 1
            stack[top - 1] -= stack[top]
        elif word == MULTIPLY:
            top -= 1
            stack[top - 1] *= stack[top]
        elif word == SWAP:
            stack[top - 1], stack[top - 2] = stack[top - 2], stack[top - 1]
        elif word == DOUBLE:
            stack[top] = stack[top - 1]
            top += 1
        elif word == TURNS:
            turns = i32(code[at])
            at += 1
        elif word == AGAIN:
            turns -= 1
            at = at - i32(code[at]) if turns > 0 else at + 1
        else:
            break
    out[i] = i64(stack[top - 1])


@st.kernel
def montgomery_products(a: Global[u32], b: Global[u32], out: Global[u32], n: i32) -> None:
    """out = products by Montgomery modulo a prime of 255 bits: eight words each in registers, interleaved in memory."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    t = st.registers(u32, 9)
    for k in st.unroll(range(9)):
        t[k] = u32(0)
    for k in st.unroll(range(8)):
        by = u64(b[k * n + i])
        carry = u64(0)
        for j in st.unroll(range(8)):
            total = u64(a[j * n + i]) * by + u64(t[j]) + carry
            t[j] = u32(total)
            carry = total >> 32
        total = u64(t[8]) + carry
        t[8] = u32(total)
        over = u32(total >> 32)
        factor = u64(t[0] * u32(INVERSE))
        carry = (factor * LIMBS[0] + u64(t[0])) >> 32
        for j in st.unroll(range(1, 8)):
            total = factor * LIMBS[j] + u64(t[j]) + carry
            t[j - 1] = u32(total)
            carry = total >> 32
        total = u64(t[8]) + carry
        t[7] = u32(total)
        t[8] = over + u32(total >> 32)
    less = st.registers(u32, 8)
    borrow = u64(0)
    for j in st.unroll(range(8)):
        total = u64(t[j]) - LIMBS[j] - borrow
        less[j] = u32(total)
        borrow = total >> 63
    for j in st.unroll(range(8)):
        out[j * n + i] = less[j] if borrow <= u64(t[8]) else t[j]


@st.kernel
def parse_decimals(text: Global[u8], start: Global[i32], out: Global[f64], n: i32) -> None:
    """out = decimal numbers of a text, each ended by a comma: blanks, a sign, digits and perhaps a point."""
    powers = st.constant(f64, POWERS)
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        at = start[i]
        while text[at] == 32:
            at += 1
        negative = text[at] == 45
        if negative or text[at] == 43:
            at += 1
        digits, behind, point = i64(0), 0, False
        letter = text[at]
        while letter != 44:
            if letter == 46:
                point = True
            else:
                digits = digits * 10 + i64(letter) - 48
                if point:
                    behind += 1
            at += 1
            letter = text[at]
        value = f64(digits) / powers[behind]
        out[i] = -value if negative else value


@st.kernel
def civil_dates(day: Global[i32], out: Global[i32], n: i32) -> None:
    """out = dates as year, month and day in decimal digits, from days since 1970, also before it."""
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        z = day[i] + 719468
        era = z // 146097
        of_era = z % 146097
        year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
        of_year = of_era - (365 * year + year // 4 - year // 100)
        shifted = (5 * of_year + 2) // 153
        month = shifted + 3 if shifted < 10 else shifted - 9
        year += 400 * era + (1 if month <= 2 else 0)
        out[i] = 10000 * year + 100 * month + of_year - (153 * shifted + 2) // 5 + 1


@st.device
def quarter(x: u32, y: u32, right: u32, upper: u32, side: u32) -> tuple[u32, u32]:
    """A position on the curve of a quadrant, rotated or mirrored."""
    if upper == 0:
        if right == 1:
            x, y = side - 1 - x, side - 1 - y
        return y, x
    return x, y


@st.kernel
def hilbert_order(x: Global[u32], y: Global[u32], out: Global[u32], n: i32, LOG: Const) -> None:
    """out = places along Hilbert's curve."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    a, b = x[i], y[i]
    place = u32(0)
    for level in range(LOG - 1, -1, -1):
        right, upper = a >> u32(level) & 1, b >> u32(level) & 1
        place += (3 * right ^ upper) << u32(2 * level)
        a, b = quarter(a, b, right, upper, u32(1 << LOG))
    out[i] = place


@st.kernel
def bit_vector_distances(word: Global[u8], text: Global[u8], out: Global[i32], n: i32, length: i32) -> None:
    """out = edit distances of words of 64 letters and texts, a thread a pair, a column of the table in two words of bits."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    equal = st.local(u64, 4)
    for letter in range(4):
        equal[letter] = u64(0)
    for k in range(64):
        equal[i32(word[k * n + i])] |= u64(1) << u64(k)
    up, down, score = ~u64(0), u64(0), 64
    for k in range(length):
        same = equal[i32(text[k * n + i])] | down
        diagonal = (((same & up) + up) ^ up) | same
        right_up = down | ~(diagonal | up)
        right_down = up & diagonal
        if right_up >> 63 != 0:
            score += 1
        elif right_down >> 63 != 0:
            score -= 1
        right_up = right_up << 1 | 1
        up = right_down << 1 | ~(diagonal | right_up)
        down = right_up & diagonal
    out[i] = score


@st.device
def compared(genome: Global[u8], at: i32, size: i32, word: Global[u8], first: i32, length: i32) -> i32:
    """Below 0 if a suffix is before a word, 0 if the word is its prefix, above 0 if it is after."""
    for k in range(length):
        if at + k >= size:
            return -1
        apart = i32(genome[at + k]) - i32(word[first + k])
        if apart != 0:
            return apart
    return 0


@st.kernel
def suffix_search(
    genome: Global[u8], suffix: Global[i32], word: Global[u8], out: Global[i32], n: i32, size: i32, length: i32
) -> None:
    """out = how often each word is in a genome, by two searches in its sorted suffixes."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if compared(genome, suffix[middle], size, word, i * length, length) < 0:
            low = middle + 1
        else:
            high = middle
    first, high = low, size
    while low < high:
        middle = (low + high) // 2
        if compared(genome, suffix[middle], size, word, i * length, length) <= 0:
            low = middle + 1
        else:
            high = middle
    out[i] = low - first


@st.kernel
def longest_matches(x: Global[u8], out: Global[i32], n: i32, WINDOW: Const, MOST: Const) -> None:
    """out = length and distance of the longest match of each place in the WINDOW bytes before it, the nearest of them."""
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        longest, where = 0, 0
        most = min(MOST, n - i)
        for distance in range(1, min(WINDOW, i) + 1):
            if longest > 0 and x[i + longest] != x[i + longest - distance]:
                continue
            length = 0
            while length < most and x[i + length] == x[i + length - distance]:
                length += 1
            if length > longest:
                longest, where = length, distance
                if longest == most:
                    break
        out[i] = longest << 16 | where


# ------------------------------------------------------------------ launches
PROGRAMS = 24


def _program(rng: np.random.Generator) -> list[int]:
    """The first section fills the stack; the repeated one keeps its height."""
    code = [INPUT, PUSH, int(rng.integers(1, 9)), TURNS, int(rng.integers(2, 12))]
    loop = len(code)
    for _ in range(rng.integers(1, 6)):
        subtracted = [PUSH, int(rng.integers(-99, 99)), SUBTRACT]
        code += [[DOUBLE, MULTIPLY], [INPUT, ADD], subtracted, [SWAP]][rng.integers(4)]
    code += [AGAIN, len(code) + 1 - loop, ADD]
    return [*code, HALT]


def _machines(n: int, block: int) -> Args:
    rng = draw()
    programs = [_program(rng) for _ in range(PROGRAMS)]
    return {
        "code": np.concatenate(programs).astype(np.int16),
        "start": np.cumsum([0, *map(len, programs[:-1])]).astype(np.int32), "which": ints(n, PROGRAMS),
        "x": rng.integers(-50, 50, n), "out": zeros(n, np.int64), "n": n, "DEPTH": 8,
    }  # fmt: skip


def _run(code: Values, x: Values) -> Values:
    stack: list[Values] = []
    at = iterations = 0
    while code[at] != HALT:
        word, operand = code[at], int(code[at + 1])
        at += 2 if word in (PUSH, TURNS, AGAIN) else 1
        if word in (PUSH, INPUT):
            stack.append(np.full_like(x, operand) if word == PUSH else x)
        elif word in (ADD, SUBTRACT, MULTIPLY):
            b, a = stack.pop(), stack.pop()
            stack.append(a + b if word == ADD else a - b if word == SUBTRACT else a * b)
        elif word == SWAP:
            stack[-2:] = stack[:-3:-1]
        elif word == DOUBLE:
            stack.append(stack[-1])
        elif word == TURNS:
            iterations = operand
        else:
            iterations -= 1
            at -= operand + 1 if iterations > 0 else 0
    return stack[-1]


def _left(args: Args) -> dict[str, Values]:
    out = np.zeros_like(args["x"])
    for k, start in enumerate(args["start"]):
        own = args["which"] == k
        out[own] = _run(args["code"][start:], args["x"][own])
    return {"out": out}


def _factors(n: int, block: int) -> Args:
    a, b = words(16 * n).reshape(2, 8 * n)
    for x in (a, b):
        x[7 * n :] >>= 1
        x[-2] = 0
    return {"a": a.copy(), "b": b.copy(), "out": zeros(8 * n, np.uint32), "n": n}


def _long(words: Values, n: int) -> list[int]:
    bytes = words.reshape(8, n).T.tobytes()
    return [int.from_bytes(bytes[at : at + 32], "little") for at in range(0, len(bytes), 32)]


def _products(args: Args) -> dict[str, Values]:
    n, inverse = args["n"], pow(2**256, -1, PRIME)
    pairs = zip(_long(args["a"], n), _long(args["b"], n), strict=True)
    bytes = b"".join((a * b * inverse % PRIME).to_bytes(32, "little") for a, b in pairs)
    return {"out": np.frombuffer(bytes, np.uint32).reshape(n, 8).T}


def _decimals(n: int, block: int) -> Args:
    digits, behind = draw().integers(-(10**8), 10**8, n) // 10 ** draw().integers(0, 8, n), draw().integers(0, 6, n)
    both = zip(digits.tolist(), behind.tolist(), strict=True)
    forms = [" " * (k % 3) + f"{d / 10**b:+.{b}f}," for k, (d, b) in enumerate(both)]
    start = np.cumsum([0, *map(len, forms[:-1])]).astype(np.int32)
    text = np.frombuffer("".join(forms).encode(), np.uint8).copy()
    return {"text": text, "start": start, "out": zeros(n, np.float64), "n": n}


def _parsed(args: Args) -> dict[str, Values]:
    return {"out": np.array(args["text"].tobytes().decode().split(",")[:-1], float)}


def _dated(args: Args) -> dict[str, Values]:
    day = args["day"].astype("datetime64[D]")
    month, year = day.astype("datetime64[M]"), day.astype("datetime64[Y]")
    of_year = (month - year).astype(int) + 1
    return {"out": 10000 * (year.astype(int) + 1970) + 100 * of_year + (day - month).astype(int) + 1}


CURVE = 12


def _places(n: int, block: int) -> Args:
    x, y = words(2 * n).reshape(2, n) >> 32 - CURVE
    return {"x": x.copy(), "y": y.copy(), "out": zeros(n, np.uint32), "n": n, "LOG": CURVE}


def _along(args: Args) -> dict[str, Values]:
    """Compute by quarters from the largest on; their curves are mirrored at a diagonal or at both."""
    x, y = args["x"].astype(int), args["y"].astype(int)
    place, side = np.zeros_like(x), 1 << CURVE
    for level in range(CURVE - 1, -1, -1):
        right, upper = x >> level & 1, y >> level & 1
        place = 4 * place + (3 * right ^ upper)
        mirrored = (upper == 0) & (right == 1)
        x, y = np.where(mirrored, side - 1 - x, x), np.where(mirrored, side - 1 - y, y)
        x, y = np.where(upper == 0, y, x), np.where(upper == 0, x, y)
    return {"out": place}


LENGTH = 48


def _strings(n: int, block: int) -> Args:
    word = ints(64 * n, 4, np.uint8)
    text = np.where(draw().random(LENGTH * n) < 0.8, word[: LENGTH * n], 3 - word[: LENGTH * n])
    return {"word": word, "text": text, "out": zeros(n, np.int32), "n": n, "length": LENGTH}


def _distances(args: Args) -> dict[str, Values]:
    word, text = (args[name].reshape(-1, args["n"]) for name in ("word", "text"))
    column = np.repeat(np.arange(65)[:, None], args["n"], axis=1).astype(np.int16)
    for k in range(LENGTH):
        new = np.full_like(column, k + 1)
        for r in range(64):
            new[r + 1] = np.minimum(np.minimum(new[r], column[r + 1]) + 1, column[r] + (word[r] != text[k]))
        column = new
    return {"out": column[-1]}


SIZE, WORD = 1 << 14, 7


def _codes(x: Values, length: int) -> Values:
    """Substrings of a genome as numbers to the base 5; letters beyond its end are 0."""
    padded = np.concatenate([x.astype(int), np.zeros(length - 1, int)])
    return np.lib.stride_tricks.sliding_window_view(padded, length) @ 5 ** np.arange(length)[::-1]


def _genome(n: int, block: int) -> Args:
    """Half of the words are taken from it."""
    genome, word = ints(SIZE, 4, np.uint8) + np.uint8(1), ints(n * WORD, 4, np.uint8).reshape(n, WORD) + np.uint8(1)
    word[::2] = genome[ints(len(word[::2]), SIZE - WORD)[:, None] + np.arange(WORD)]
    suffix = np.argsort(_codes(genome, 24), kind="stable").astype(np.int32)
    return {
        "genome": genome, "suffix": suffix, "word": word.ravel(), "out": zeros(n, np.int32), "n": n, "size": SIZE, "length": WORD,
    }  # fmt: skip


def _often(args: Args) -> dict[str, Values]:
    count = np.bincount(_codes(args["genome"], WORD), minlength=5**WORD)
    return {"out": count[args["word"].reshape(-1, WORD) @ 5 ** np.arange(WORD)[::-1]]}


WINDOW, MOST = 64, 18


def _repeated(n: int, block: int) -> Args:
    """Syllables of four letters, random of twelve."""
    syllables = ints(48, 26, np.uint8).reshape(12, 4) + np.uint8(97)
    return {
        "x": syllables[ints(cover(n, 4), 12)].ravel()[:n], "out": zeros(n, np.int32), "n": n, "WINDOW": WINDOW, "MOST": MOST,
    }  # fmt: skip


def _matched(args: Args) -> dict[str, Values]:
    x, n = args["x"], args["n"]
    longest = position = np.zeros(n, int)
    for distance in range(1, WINDOW + 1):
        same = np.concatenate([np.zeros(distance, bool), x[distance:] == x[:-distance], np.zeros(MOST, bool)])
        length, continues = np.zeros(n, int), np.ones(n, bool)
        for k in range(MOST):
            continues = continues & same[k : k + n]
            length += continues
        position, longest = np.where(length > longest, distance, position), np.maximum(longest, length)
    return {"out": longest << 16 | position}


BLOCKS = (64, 256, 1024)

KERNELS = (
    ValidationKernel(stack_machine, cover, _machines, _left, (300, 64), (1 << 14, 1 << 17), (64, 128, 256)),
    ValidationKernel(montgomery_products, cover, _factors, _products, (300, 64), (1 << 14, 1 << 17), (64, 128, 256)),
    ValidationKernel(parse_decimals, cover, _decimals, _parsed, (500, 128), (1 << 14, 1 << 17), BLOCKS),
    ValidationKernel(
        civil_dates, lambda n, b: min(cover(n, b), 528),
        lambda n, b: {"day": ints(n, 400000) - np.int32(150000), "out": zeros(n, np.int32), "n": n}, _dated, (1000, 128),
    ),
    ValidationKernel(hilbert_order, cover, _places, _along, (1000, 128), (1 << 16, 1 << 20), BLOCKS),
    ValidationKernel(bit_vector_distances, cover, _strings, _distances, (200, 64), (1 << 12, 1 << 15), (64, 128, 256)),
    ValidationKernel(suffix_search, cover, _genome, _often, (200, 64), (1 << 14, 1 << 17), BLOCKS),
    ValidationKernel(longest_matches, lambda n, b: min(cover(n, b), 1056), _repeated, _matched, (600, 128)),
)  # fmt: skip
