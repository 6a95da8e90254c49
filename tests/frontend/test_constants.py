"""Compile-time constants in a kernel: types like literals, and hints for other objects."""

import pytest
import simtbed as st
from simtbed.frontend.reader import specialise

PARAMETERS = ", ".join(
    f"{name}: st.Global[st.{type}]"
    for name, type in {"byte": "u8", "word": "u32", "wide": "u64", "whole": "i32", "real": "f32"}.items()
)


def read(lines: str) -> None:
    """Read a kernel of these lines, where `n` is an st.i32."""
    body = lines.replace("\n", "\n    ")
    specialise(st.kernel(source=f"def k({PARAMETERS}, n: st.i32) -> None:\n    {body}\n"), {})


@pytest.mark.parametrize(
    "line",
    [
        "word[0] += k",
        "word[0] = word[1] >> (4 * k)",
        "wide[0] = (wide[1] & (1 << k)) + (k if k > 1 else 2)",
        "real[0] *= 2 * k + 1",
        "real[0] = k * 0.5",
        "at = k + 1; word[at] = at; whole[at] = at",
        "for j in range(n):\n        word[j] = min(word[j], k)",
        "for j in st.unroll(range(k + 1)):\n        byte[0] += j * k",
        "at = st.i32(k); whole[0] = (5, 6, 7, 8)[at]",
        "piece = st.local(st.f32, k + 1); piece[0] = k",
    ],
)
def test_variables_of_unrolled_loops_take_types(line: str) -> None:
    read(f"for k in st.unroll(range(4)):\n    {line}")


@pytest.mark.parametrize(
    "line",
    [
        "count = st.i32(4); piece = st.local(st.f32, count); piece[0] = 0.0",
        "at = st.i32(1); whole[0] = (5, 6)[at]",
        "at = st.i64(3); whole[0] = (5, 6)[at // 2]",
        "at = st.i32(1)\nfor k in st.unroll(range(2)):\n    whole[k] = (5, 6)[at] + (7, 8)[k]",
        "for k in (0, 1):\n    at = st.i32(k)\n    whole[k] = (5, 6)[at]",
        "whole[0] = b'{['[1]",
        "for k in b'{[':\n    whole[0] = k if byte[0] in b'{[' else 0",
    ],
)
def test_typed_constants_are_known(line: str) -> None:
    read(line)


@pytest.mark.parametrize(
    ("line", "message", "advice"),
    [
        ("wide[0] &= ~0", "-1 does not fit u64", "write ~st.u64(0)"),
        ("word[0] = word[1] & ~(3 | 4)", "-8 does not fit u32", "write ~st.u32(7)"),
        ("byte[0] = ~0", "-1 does not fit u8", "write ~st.u8(0)"),
        ("byte[0] = byte[1] & ~256", "-257 does not fit u8", "use st.i16"),
        ("word[0] += -1", "-1 does not fit u32", "use st.i32"),
        ("for k in st.unroll(range(2)):\n    word[k] += st.i32(k)", "+ of u32 and i32", "st.u32(st.i32(k))"),
        ("for k in st.unroll(range(2)):\n    word[k] += k + n", "+ of u32 and i32", "st.u32(k + n)"),
        ("for k in st.unroll(range(2)):\n    word[k] += k - 1", "-1 does not fit u32", "use st.i32"),
        ("word[0] >>= real[0]", ">> takes an integer as its count, this is f32", "cast it: st.i32(real[0])"),
        ("word[0] <<= n > 1", "<< takes an integer as its count, this is bool", "cast it: st.i32(n > 1)"),
        ("real[0] = real[1] >> n", ">> is not defined for f32", "cast it: st.i32(x)"),
        ("whole[0] += n > 1", "+ of i32 and bool: nothing is converted silently", "write st.i32(n > 1)"),
        ("whole[0] = ord('ab')", "ord takes a text of one character", 'write ord("A")'),
        ("whole[0] = ord(n)", "ord takes a text of one character", 'write ord("A")'),
        ("t = [0, 0, 0, 0]", "a list is not in the kernel language", "write st.local(st.i32, n)"),
        ("t = [0, 0.5]", "a list is not in the kernel language", "write st.local(st.f32, n)"),
        ("t = [0, wide[0]]", "a list is not in the kernel language", "write st.local(st.u64, n)"),
        ("t = [n > 1] * 4", "a list is not in the kernel language", "write st.local(st.bool, n)"),
        ("t = {nowhere}", "a set is not in the kernel language", "write st.local(st.f32, n)"),
        ("assert n in range(4)", "`in` takes a tuple of numbers, this is a range", "write 0 <= n < 4"),
        ("assert n + 1 not in range(2, n)", "this is a range", "write not 2 <= n + 1 < n"),
        (
            "assert n in whole",
            "`in` takes a tuple of numbers, this is a global array",
            "write a loop over its elements",
        ),
        ("assert n in 'ab'", "this is the text 'ab'", "ord(...)"),
        ("assert n == 'a'", "this is the text 'a'", "write ord('a')"),
        ("whole[...] = 1", "this constant is not in the kernel language", "write a number"),
        ("assert n in (1, word[0])", "in of i32 and u32", "st.u32(n)"),
        ("assert n in ((1, 2), 3)", "in takes numbers, this is a tuple", "write an item"),
    ],
)
def test_advice(line: str, message: str, advice: str) -> None:
    with pytest.raises(st.CompileError) as caught:
        read(line)
    assert len(caught.value.diagnostics) == 1
    assert message in str(caught.value) and advice in str(caught.value)
