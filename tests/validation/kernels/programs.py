"""Numbers and strings: decimals."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Global, f64, i32, i64, u8

from .kernel import Args, ValidationKernel, Values, cover, draw, zeros

POWERS = tuple(10.0**k for k in range(10))


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


# ------------------------------------------------------------------ launches


def _decimals(n: int, block: int) -> Args:
    digits, behind = draw().integers(-(10**8), 10**8, n) // 10 ** draw().integers(0, 8, n), draw().integers(0, 6, n)
    both = zip(digits.tolist(), behind.tolist(), strict=True)
    forms = [" " * (k % 3) + f"{d / 10**b:+.{b}f}," for k, (d, b) in enumerate(both)]
    start = np.cumsum([0, *map(len, forms[:-1])]).astype(np.int32)
    text = np.frombuffer("".join(forms).encode(), np.uint8).copy()
    return {"text": text, "start": start, "out": zeros(n, np.float64), "n": n}


def _parsed(args: Args) -> dict[str, Values]:
    return {"out": np.array(args["text"].tobytes().decode().split(",")[:-1], float)}


BLOCKS = (64, 256, 1024)

KERNELS = (
    ValidationKernel(parse_decimals, cover, _decimals, _parsed, (500, 128), (1 << 14, 1 << 17), BLOCKS),
)  # fmt: skip
