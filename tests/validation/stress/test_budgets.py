"""Kernels that no compiler finishes: each is refused at its line, with the limit, before anything is expanded."""

import inspect
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simtbed import CompileError, Kernel, LaunchError, launch
from simtbed.ir.limits import DEEPEST_CALLS, MOST_STATEMENTS
from simtbed.runtime.registry import cuda_text
from simtbed.testing.source_text import kernel_from_source

ARGUMENTS: dict[str, Any] = {"x": np.ones(2048, np.float32), "u": np.arange(16, dtype=np.int32), "n": 3}


def generated_kernel(folder: Path, body: str, before: str = "") -> Kernel:
    """A kernel of these lines, with x, u and n, after other definitions."""
    head = "import simtbed as st\n" + before
    head += "@st.kernel\ndef generated(x: st.Global[st.f32], u: st.Global[st.i32], n: st.i32) -> None:\n"
    return kernel_from_source(head + textwrap.indent(body, "    ") + "\n", folder)


def chain(length: int, body: str) -> str:
    """Device functions f0, f1 ..., of which each calls the one before as `body` says."""
    first = "@st.device\ndef f0(a: st.i32) -> st.i32:\n    return a + 1\n"
    rest = (f"@st.device\ndef f{i}(a: st.i32) -> st.i32:\n    return {body.format(i - 1)}\n" for i in range(1, length))
    return first + "".join(rest)


TOO_MUCH = {
    "local": ("a = st.local(st.f32, 1000000000)\na[n] = 1.0\nx[0] = a[n]", "", "4,000,000,000 bytes of local memory a thread"),
    "local together": ("a = st.local(st.f32, 1 << 16)\nb = st.local(st.f32, 1 << 17)\na[n] = b[n]", "", "786,432 bytes of local"),
    "enormous": ("a = st.local(st.f32, 1 << 100)\na[n] = 1.0", "", "more than 2**64 bytes of local memory"),
    "registers": ("a = st.registers(st.f32, 1000000000)\na[0] = 1.0\nx[0] = a[0]", "", "1,000,000,000 registers in arrays"),
    "constants": ("a = st.constant(st.f32, T)\nx[0] = a[n]", "T = (1.0,) * 20000\n", "80,000 bytes of constant tables"),
    "many constants": ("a = st.constant(st.f32, T)\nx[0] = a[n]", "T = (1.0,) * 3000000\n", "bytes of constant tables"),
    "unrolled": ("for k in st.unroll(range(1000000)):\n    x[k] = 1.0", "", "1,000,000 statements by this unrolled loop"),
    "empty": ("for k in st.unroll(range(1 << 30)):\n    pass\nx[0] = 1.0", "", "1,073,741,824 statements"),
    "nested": (
        "for a in st.unroll(range(200)):\n    for b in st.unroll(range(a, 200)):\n        x[a + b] = 1.0", "", "by this unrolled loop"),
    "calls": ("u[0] = f20(n)", chain(21, "f{0}(a) + f{0}(a + 1)"), "statements up to here"),
    "deep calls": ("u[0] = f199(n)", chain(200, "f{0}(a)"), "nested more than 100 deep"),
    "expression": (f"u[0] = {'(n + ' * 150}n{')' * 150}", "", "nested more than 100 deep"),
    "signs": (f"u[0] = {'-' * 900}n", "", "nested more than 100 deep"),
    "shift": ("u[0] = 1 << 100000000000", "", "needs more than 256 bits"),
    "product": (f"u[0] = {' * '.join(['1000000000'] * 2000)}", "", "needs more than 256 bits"),
    "literal": (f"x[0] = x[0] * 1{'0' * 400}", "", "a whole number of 1,329 bits does not fit f32"),
    "float": ("x[0] = 1e300", "", "1e+300 does not fit f32, which holds up to 3.4028235e+38"),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_MUCH)
def test_too_much_is_refused(name: str, tmp_path: Path) -> None:
    body, before, message = TOO_MUCH[name]
    with pytest.raises(CompileError) as caught:
        launch(generated_kernel(tmp_path, body, before), grid=1, block=1, args=ARGUMENTS)
    first = str(caught.value).splitlines()[0]
    assert message in first
    assert ".py:" in first  # a line of the user's


STATEMENTS = {
    "in a row": "x[0] = 1.0\n" * (MOST_STATEMENTS + 1),
    "written out": "for a in T:\n    for b in T:\n        for c in T:\n            x[a] = 1.0",
}


@pytest.mark.parametrize("body", STATEMENTS.values(), ids=list(STATEMENTS))
def test_too_many_statements_are_refused(body: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="statements are read up to here"):
        launch(generated_kernel(tmp_path, body, "T = tuple(range(200))\n"), grid=1, block=1, args=ARGUMENTS)


def test_shared_memory_is_refused_by_the_device(tmp_path: Path) -> None:
    kernel = generated_kernel(tmp_path, "a = st.shared(st.f32, 1000000000)\na[0] = 1.0\nx[0] = a[0]")
    with pytest.raises(LaunchError, match=r"needs 4,000,000,000 bytes of shared memory a block: the H200 has 232,448"):
        launch(kernel, grid=1, block=1, args=ARGUMENTS)


DEEP: dict[str, tuple[str, Callable[[int], float]]] = {
    "sum": (f"x[0] = st.f32({' + '.join(['n'] * 500)})", lambda n: 500 * n),
    "and": (f"if {' and '.join(['n > 1'] * 500)}:\n    x[0] = 7.0", lambda n: 7),
    "or, with effects": (f"if {' or '.join(['u[0] > n'] * 200 + ['n == 3'])}:\n    x[0] = 7.0", lambda n: 7),
    "comparisons": (f"if {' <= '.join(['n'] * 500)}:\n    x[0] = 7.0", lambda n: 7),
    "least": (f"x[0] = st.f32(min({', '.join(['n'] * 500)}))", lambda n: n),
    "brackets": (f"x[0] = st.f32({'(n + ' * 90}n{')' * 90})", lambda n: 91 * n),
    "signs": (f"x[0] = st.f32({'-' * 90}n)", lambda n: n),
    "indices": (f"x[0] = st.f32({'u[' * 80}n{']' * 80})", lambda n: n),
    "else": ("if n == 0:\n    x[0] = 1.0\n" + "elif n == 1:\n    x[0] = 2.0\n" * 85 + "else:\n    x[0] = 7.0", lambda n: 7),
    "calls": (f"x[0] = st.f32(f{DEEPEST_CALLS - 1}(n))", lambda n: n + 1),
}  # fmt: skip


@pytest.mark.parametrize("name", DEEP)
def test_what_is_deep_or_long_runs_on_every_engine(name: str, tmp_path: Path) -> None:
    body, expected = DEEP[name]
    kernel = generated_kernel(tmp_path, body, chain(DEEPEST_CALLS, "f{0}(a)"))
    how: Any = {"grid": 1, "block": 1, "args": ARGUMENTS}
    for engine in ("jit", "numpy"):
        result = launch(kernel, engine=engine, **how)
        assert result["x"][0] == expected(3)
        assert "generated" in cuda_text(result.request)


LEFT = 60
"""Calls that are left: fewer than reading a kernel needs."""


def test_the_end_of_pythons_stack_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path / "cache"))  # a kernel that is kept is not read
    kernel = generated_kernel(tmp_path, f"x[1] = st.f32({'(n + ' * 70}n{')' * 70})")

    def within(calls: int) -> None:
        if calls:
            within(calls - 1)
        else:
            launch(kernel, grid=1, block=1, args=ARGUMENTS)

    with pytest.raises(LaunchError, match="Python's stack ended"):
        within(sys.getrecursionlimit() - len(inspect.stack()) - LEFT)


def test_constants_that_compare_equal_are_different(tmp_path: Path) -> None:
    before = "@st.device\ndef half(K: st.Const) -> st.f32:\n    return 1.0 / st.f32(K)\n"
    kernel = generated_kernel(tmp_path, "x[0] = half(0.0)\nx[1] = half(-0.0)", before)
    result = launch(kernel, grid=1, block=1, args=ARGUMENTS)["x"]
    assert result[0] == np.inf and result[1] == -np.inf
