"""Hints of compile errors: their text, and that the corrected kernels compile."""

from typing import NamedTuple

import pytest
import simtbed as st
from simtbed import Diagnostic
from simtbed.frontend.reader import specialise

TYPES = {"byte": "u8", "word": "u32", "wide": "u64", "long": "i64", "whole": "i32", "pair": "float2"}
PARAMETERS = ", ".join(f"{name}: st.Global[st.{type}]" for name, type in TYPES.items())


class Point(NamedTuple):
    """A struct."""

    x: st.f32
    y: st.f32


@st.device
def longer(a: st.i64) -> st.i64:
    return a


@st.device
def product(a: st.i32, b: st.i32) -> st.i64:
    return a * b


def read(lines: str) -> None:
    """Read a kernel of these lines, where `n` and `m` are st.i32, and `u` is an st.u32."""
    body = lines.replace("\n", "\n    ")
    specialise(st.kernel(source=f"def k({PARAMETERS}, n: st.i32, m: st.i32, u: st.u32) -> None:\n    {body}\n"), {})


def diagnostic_of(lines: str) -> Diagnostic:
    """Return the only diagnostic of these lines."""
    with pytest.raises(st.CompileError) as caught:
        read(lines)
    (actual,) = caught.value.diagnostics
    return actual


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("wide[0] = 1 << st.thread.x", "st.u64(1) << st.thread.x"),
        ("long[0] = st.thread.x * 1000000007", "st.i64(st.thread.x) * 1000000007"),
        ("long[0] = (n + m) * 0x10", "(st.i64(n) + st.i64(m)) * 0x10"),
        ("long[0] = -n", "-st.i64(n)"),
        ("long[0] = n ** 2", "st.i64(n) ** 2"),
        ("long[0] = ~(1 << n) | (n >> 2)", "~(st.i64(1) << n) | (st.i64(n) >> 2)"),
        ("long[0] = whole[n] * m if n > 2 else 7", "st.i64(whole[n]) * st.i64(m) if n > 2 else 7"),
        ("whole[0] = byte[0] - byte[1]", "st.i32(byte[0]) - st.i32(byte[1])"),
        ("wide[0] = (2 * 3) << n", "(st.u64(2 * 3)) << n"),
        ("wide[0] = n * m // 3", "st.u64(st.i64(n) * st.i64(m) // 3)"),
        ("long[0] = n", "st.i64(n)"),
        ("long[0] = min(n, m)", "st.i64(min(n, m))"),
        ("long[0] = whole[n * m]", "st.i64(whole[n * m])"),
        ("wide[0] = n % m", "st.u64(n % m)"),
        ("word[0] = n * m", "st.u32(n * m)"),
        ("whole[0] = long[0] * 2", "st.i32(long[0] * 2)"),
    ],
)
def test_operands_are_widened_not_results(line: str, advice: str) -> None:
    assert diagnostic_of(line).notes == (f"nothing is converted silently: write {advice}",)
    read(f"{line.partition(' = ')[0]} = {advice}")


@pytest.mark.parametrize(
    ("lines", "advice"),
    [
        ("wide[0] |= 1 << n", "write st.u64(1) << n"),
        ("wide[0] = wide[1] * byte[0]", "write st.u64(byte[0])"),
        ("t = long[0]\nt = n * m", "write st.i64(n) * st.i64(m) here, or start t as st.i32(...)"),
        ("t = long[0]\nt = n", "write st.i64(n) here, or start t as st.i32(...)"),
        ("long[0] = longer(n * m)", "nothing is converted silently: write st.i64(n) * st.i64(m)"),
        ("long[0] = product(n, m)", "nothing is converted silently: write st.i64(a) * st.i64(b)"),
        (
            "long[0] = n * m * whole[n] + n * m * whole[m] + n * m",
            "nothing is converted silently: write st.i64(...) of each operand",
        ),
        ("long[0], long[1] = n, n", "nothing is converted silently: write st.i64(...)"),
    ],
)
def test_operands_are_widened_in_each_advised_cast(lines: str, advice: str) -> None:
    assert diagnostic_of(lines).notes == (advice,)


INDICES = [
    "a, b = k, 4 + (k + 1) % 4",
    "(a, b), _ = (k, 4 + (k + 1) % 4), k",
    "b = a = k + 1",
    "a, b = k, k + st.i32(1)",
]


@pytest.mark.parametrize("line", INDICES)
def test_constants_of_one_assignment_are_compile_time(line: str) -> None:
    read(f"r = st.registers(st.i32, 8)\nfor k in st.unroll(range(4)):\n    {line}\n    r[a] = r[b] + a")


def test_right_sides_are_evaluated_before_a_name_changes() -> None:
    """In the second iteration `b` is the `a` of the first one."""
    lines = "a, b = k + st.i32(1), (a if k > 0 else st.i32(0))\n        out[k] = 10 * a + b"
    source = f"def k(out: st.Global[st.i32]) -> None:\n    for k in (0, 1, 2):\n        {lines}\n"
    result = st.launch(st.kernel(source=source), grid=1, block=1, args={"out": st.empty(3, st.i32)})
    assert result.out.tolist() == [10, 21, 32]


@pytest.mark.parametrize("line", ["total += 0.5", "total = total + 0.5", "for i in range(n):\n    total += 0.5"])
def test_a_total_started_as_integer_is_reported_once(line: str) -> None:
    actual = diagnostic_of(f"total = 0\n{line}\nout = st.f32(1.0) + total")
    assert actual.notes == ("total starts as a whole number: start it as a float, such as 0.0",)


@pytest.mark.parametrize(
    ("lines", "advice"),
    [
        ("h = 2166136261\nh ^= st.thread.x", "use st.u32(...) or st.i64(...)"),
        ("whole[0] = 4000000000", "use st.u32(...) or st.i64(...)"),
        ("whole[0] = 5000000000", "use st.i64"),
        ("h = st.i8(200)", "use st.u8(...) or st.i16(...)"),
        ("long[0] = 1 << 63", "use st.u64"),
    ],
)
def test_unsigned_types_of_the_same_size_are_first(lines: str, advice: str) -> None:
    assert diagnostic_of(lines).notes == (advice,)


@pytest.mark.parametrize(
    ("array", "line", "loop"),
    [
        ("st.local(st.i32, 4)", "r[:] = 0", "for j in range(len(r)): r[j] = ..."),
        ("st.local(st.i32, 8)", "r[2:6] += 1", "for j in range(2, 6): r[j] = ..."),
        ("st.local(st.i32, 8)", "r[::2] = 1", "for j in range(0, len(r), 2): r[j] = ..."),
        ("st.registers(st.i32, 4)", "r[:] = 0", "for j in st.unroll(range(len(r))): r[j] = ..."),
        ("st.local(st.i32, 4, 4)", "r[n, :] = 0", "for j in range(r.shape[1]): r[n, j] = ..."),
        (
            "st.local(st.i32, 4, 4)",
            "r[1:] = 0",
            "for j in range(1, r.shape[0]): for k in range(r.shape[1]): r[j, k] = ...",
        ),
    ],
)
def test_a_slice_is_assigned_by_a_loop(array: str, line: str, loop: str) -> None:
    actual = diagnostic_of(f"r = {array}\n{line}")
    assert actual.message == f"{line.partition(']')[0]}] is a view of r: an assignment stores one element"
    assert actual.notes == (f"write a loop: {loop}",)
    *heads, last = loop.replace("...", "0").split(": ")
    read(
        "\n".join(
            [f"r = {array}", *(f"{' ' * at}{head}:" for at, head in enumerate(heads)), f"{' ' * len(heads)}{last}"]
        )
    )


def test_a_tuple_that_is_indexed_at_run_time_becomes_a_table() -> None:
    actual = diagnostic_of("t = (1, 2, 3, 4)\nwhole[0] = t[n & 3]")
    assert actual.notes == (
        "use st.constant(...) for a table of constants, or st.local(...): both are indexed at run time",
    )
    read("t = st.constant(st.i32, (1, 2, 3, 4))\nwhole[0] = t[n & 3]")


@pytest.mark.parametrize(
    ("line", "element"),
    [
        ("x = whole if n > 2 else whole", "whole[i] if n > 2 else whole[i]"),
        ("x = word if n > 2 else whole", "word[i] if n > 2 else whole[i]"),
        ("x = whole[2:] if n > 2 else 0", "whole[2:][i] if n > 2 else 0"),
        ("t = st.local(st.i32, 4, 4)\nx = t if n > 2 else t", "t[i, j] if n > 2 else t[i, j]"),
    ],
)
def test_an_array_is_not_chosen_at_run_time(line: str, element: str) -> None:
    actual = diagnostic_of(line)
    assert actual.message == "an array cannot be chosen at run time"
    assert actual.notes == (f"choose the element: {element}",)


def test_a_conditional_expression_is_of_numbers() -> None:
    assert (
        diagnostic_of("x = (1, 2)[0] if n > 2 else 'a'").message
        == "a conditional expression takes numbers, this is the text 'a'"
    )


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("pair[0]", "shuffle its components: v.x, v.y ..."),
        ("st.c64(1.0, 2.0)", "shuffle its components: z.real, z.imag"),
        ("n > 2", "shuffle st.i32(flag)"),
    ],
)
def test_what_is_no_number_is_shuffled_otherwise(value: str, advice: str) -> None:
    assert diagnostic_of(f"x = st.shuffle_xor({value}, 1)").notes == (advice,)


@pytest.mark.parametrize(
    ("value", "type", "advice"),
    [
        ("byte[0] - byte[1]", "u8", "abs(st.i32(byte[0]) - st.i32(byte[1]))"),
        ("u - word[0]", "u32", "abs(st.i64(u) - st.i64(word[0]))"),
        ("u", "u32", "abs(st.i64(a) - st.i64(b))"),
        ("wide[0] - wide[1]", "u64", "max(a, b) - min(a, b)"),
    ],
)
def test_the_distance_of_unsigned_numbers(value: str, type: str, advice: str) -> None:
    actual = diagnostic_of(f"x = abs({value})")
    assert actual.message == f"abs is not defined for {type}: a difference of unsigned numbers has wrapped already"
    assert actual.notes == (f"write {advice}",)
    read(f"a, b = u, word[1]\nx = {advice}")


@st.device
def factorial(a: st.i32) -> st.i32:
    return 1 if a < 2 else a * factorial(a - 1)


def test_the_language_has_no_recursion() -> None:
    actual = diagnostic_of("x = factorial(n)")
    assert actual.message == "factorial calls itself"
    assert actual.notes == ("write a loop: the kernel language has no recursion",)


@pytest.mark.parametrize(("word", "memory"), [("shared", "shared"), ("local", "local"), ("registers", "register")])
def test_structs_are_in_global_memory(word: str, memory: str) -> None:
    actual = diagnostic_of(f"s = st.{word}(Point, 32)")
    assert actual.message == f"{memory} memory holds no structs, this is Point"
    assert actual.notes == (f"declare one array a field, each by st.{word}(...)",)


@pytest.mark.parametrize(
    ("lines", "advice"),
    [
        ("t = a\na = b\nb = t", "two arrays change places by one statement: a, b = b, a"),
        ("s = a\nd = b\ns, d = d, s", "two arrays change places by one statement: a, b = b, a"),
        ("s = a\nd = b\nif n > 0:\n    s = b", "two arrays change places by one statement: a, b = b, a"),
        ("s = a\nd = b", "write an element: a[i]"),
        ("s = a if n > 0 else b", "or let the arrays change places after each iteration: a, b = b, a"),
    ],
)
def test_arrays_that_change_places(lines: str, advice: str) -> None:
    arrays = "a = st.shared(st.f32, 32)\nb = st.shared(st.f32, 32)\n"
    with pytest.raises(st.CompileError) as caught:
        read(arrays + lines)
    assert caught.value.diagnostics[0].notes[-1] == advice
