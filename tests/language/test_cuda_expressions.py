"""Printed expressions of CUDA C++: a compiler reads the tree that was printed, and literals read back exactly."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hst
from simtbed.engines.cuda.expressions import quoted
from simtbed.engines.cuda.operators import Fragment, literal, spelled
from simtbed.ir import nodes as ir
from simtbed.language.types import BOOL, F32, F64, I8, I32, I64, U16, U32, U64, Scalar
from simtbed.span import GENERATED

LEVELS = [["|"], ["^"], ["&"], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]
SYMBOLS = {
    "or": "|", "xor": "^", "and": "&", "shl": "<<", "shr": ">>", "add": "+", "sub": "-", "mul": "*", "div": "/",
    "rem": "%",
}  # fmt: skip
Tree = tuple[Any, ...] | str


def parse(text: str) -> Tree:
    """Parse by C's grammar for these operators: the tree of a C++ compiler."""
    tokens = re.findall(r"<<|>>|[a-z]\w*|\d+|\S", text)

    def level(depth: int) -> Tree:
        if depth == len(LEVELS):
            return unary()
        left = level(depth + 1)
        while tokens and tokens[0] in LEVELS[depth]:
            left = (tokens.pop(0), left, level(depth + 1))
        return left

    def unary() -> Tree:
        token: str = tokens.pop(0)
        if token in "-~":
            return (token, unary())
        if token == "(":
            inside = level(0)
            assert tokens.pop(0) == ")"
            return inside
        return token

    tree = level(0)
    assert not tokens
    return tree


def shown(tree: Tree) -> ir.Expr:
    if isinstance(tree, str):
        return ir.Reg(tree, I32, GENERATED)
    return ir.Op(tree[0], tuple(shown(a) for a in tree[1:]), I32, GENERATED)


def symbols(tree: Tree) -> Tree:
    if isinstance(tree, str):
        return tree
    return ({**SYMBOLS, "neg": "-", "invert": "~"}[tree[0]], *(symbols(a) for a in tree[1:]))


def text_of(expr: ir.Expr) -> Fragment:
    return Fragment(expr.name) if isinstance(expr, ir.Reg) else spelled(expr, [text_of(a) for a in expr.args])  # type: ignore[union-attr,arg-type]


trees = hst.recursive(
    hst.sampled_from("abc"),
    lambda inner: (
        hst.tuples(hst.sampled_from(sorted(SYMBOLS)), inner, inner)
        | hst.tuples(hst.sampled_from(["neg", "invert"]), inner)
    ),
    max_leaves=8,
)


@given(trees)
def test_a_compiler_reads_the_tree_that_was_printed(tree: Tree) -> None:
    text = text_of(shown(tree)).text
    assert "--" not in text
    assert parse(text) == symbols(tree)


def test_results_of_narrow_types_are_cast_back() -> None:
    a, b = (ir.Reg(n, I8, GENERATED) for n in "ab")
    total = ir.Op("add", (a, b), I8, GENERATED)
    assert text_of(ir.Op("div", (total, b), I8, GENERATED)).text == "(signed char)((signed char)(a + b) / b)"
    assert text_of(ir.Op("and", (a, b), I8, GENERATED)).text == "a & b"  # fits for all a and b
    wide = tuple(ir.Reg(n, U16, GENERATED) for n in "ab")
    assert text_of(ir.Op("mul", wide, U16, GENERATED)).text == "(unsigned short)(1u * a * b)"


@pytest.mark.parametrize(
    ("value", "type", "text"),
    [
        (True, BOOL, "true"),
        (-128, I8, "-128"),
        (-(1 << 31), I32, "-2147483647 - 1"),
        (0xFFFFFFFF, U32, "4294967295u"),
        (-(1 << 63), I64, "-9223372036854775807LL - 1"),
        ((1 << 64) - 1, U64, "18446744073709551615ULL"),
        (0.1, F32, "0.1f"),
        (1.0, F32, "1.0f"),
        (-0.0, F32, "-0.0f"),
        (1e-5, F32, "1e-05f"),
        (1e-45, F32, "1e-45f"),
        (2.0**120, F32, "1.329228e+36f"),
        (0.1, F64, "0.1"),
        (float("inf"), F32, "__int_as_float(0x7f800000)"),
        (float("-inf"), F64, "-__longlong_as_double(0x7ff0000000000000LL)"),
        (float("nan"), F32, "__int_as_float(0x7fffffff)"),
    ],
)
def test_literals(value: float, type: Scalar, text: str) -> None:
    assert literal(ir.Const(value, type, GENERATED)).text == text


@given(hst.floats(allow_nan=False, allow_infinity=False))
def test_float_literals_read_back_exactly(value: float) -> None:
    text = literal(ir.Const(value, F64, GENERATED)).text
    assert float(text) == value
    with np.errstate(over="ignore"):
        single = np.float32(value)
    if np.isfinite(single):
        assert np.float32(literal(ir.Const(value, F32, GENERATED)).text.removesuffix("f")) == single


def test_texts_hold_bytes_of_paths_and_lone_surrogates() -> None:
    assert quoted('a"\u00e9\udce9\ud800') == r'"a\"\303\251\351\355\240\200"'
