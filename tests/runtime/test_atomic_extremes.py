"""Atomic minimum and maximum of floats in IR programs: the same values and counters with every engine that emulates, and printed."""

import itertools
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, f32, f64
from simtbed.engines.cuda.nvcc import find_nvcc
from simtbed.engines.cuda.printer import cuda_source
from simtbed.errors import VerifyError
from simtbed.frontend.launchable import LaunchableKernel
from simtbed.frontend.reader import specialise
from simtbed.frontend.signature import Signature
from simtbed.ir import nodes as ir
from simtbed.ir.spec import verify
from simtbed.language.types import F16
from simtbed.runtime.request import prepare_request

from tests.compilers import needs_nvcc

VALUES = (0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, -np.nan)


@st.kernel
def of_f32(x: Global[f32], out: Global[f32], old: Global[f32]) -> None:
    shared = st.shared(f32, 64)
    t = st.thread.x
    shared[t % 64] = x[64 + t]
    st.atomic_add(out, t, x[t])
    old[t] = st.atomic_add(shared, t, x[t])
    out[64 + t] = shared[t]
    st.atomic_add(out, 128, x[t])


@st.kernel
def of_f64(x: Global[f64], out: Global[f64], old: Global[f64]) -> None:
    shared = st.shared(f64, 64)
    t = st.thread.x
    shared[t % 64] = x[64 + t]
    st.atomic_add(out, t, x[t], scope="block")
    old[t] = st.atomic_add(shared, t, x[t], scope="system")
    out[64 + t] = shared[t]
    st.atomic_add(out, 128, x[t])


class Extremes(LaunchableKernel):
    """A kernel whose additions are replaced by minima or maxima."""

    def __init__(self, kernel: st.Kernel, op: Any) -> None:
        program = specialise(kernel, {}).program
        self.__name__ = f"{kernel.__name__}_{op}"
        body = tuple(_with(stmt, op) for stmt in program.kernel.body)
        self.program = replace(program, kernel=replace(program.kernel, name=self.__name__, body=body))

    def signature(self) -> Signature:
        return Signature.of_program(self.program)

    def specialise(self, consts: Mapping[str, Any], real: Any, layouts: Mapping[str, Any]) -> ir.Program:
        return self.program


def _with(stmt: ir.Stmt, op: Any, **rest: Any) -> ir.Stmt:
    if isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.Atomic):
        return replace(stmt, value=replace(stmt.value, op=op, **rest))
    return stmt


def _launch(kernel: st.Kernel, op: str) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """Return the arguments of a launch, and the expected `out`: one value of each pair is in memory."""
    type = np.float32 if kernel is of_f32 else np.float64
    value, stored = np.array(list(itertools.product(VALUES, VALUES)), type).T
    extreme = {"min": np.fmin, "max": np.fmax}[op](value, stored)
    zeros = (value == 0) & (stored == 0)
    negative = np.signbit(value) | np.signbit(stored) if op == "min" else np.signbit(value) & np.signbit(stored)
    extreme[zeros] = np.where(negative, type(-0.0), type(0.0))[zeros]
    whole = type(-np.inf if op == "min" else np.inf)
    out = np.concatenate([stored, np.zeros(64, type), [type(1)]])
    args = {"x": np.concatenate([value, stored]), "out": out, "old": np.zeros(64, type)}
    return {"grid": 1, "block": 64, "args": args}, np.concatenate([extreme, extreme, [whole]])


def _same(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(a, b)
    numbers = ~np.isnan(b)
    np.testing.assert_array_equal(np.signbit(a)[numbers], np.signbit(b)[numbers])


@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("kernel", [of_f32, of_f64])
def test_every_engine_has_the_values_of_min_and_max(kernel: st.Kernel, op: str) -> None:
    shape, expected = _launch(kernel, op)
    counts = []
    for engine in ("numpy", "jit", "python"):
        result = st.launch(Extremes(kernel, op), engine=engine, **shape)
        _same(result.out, expected)
        _same(result.old, shape["args"]["x"][64:])
        if engine != "python":
            assert result.counts is not None
            counts.append(result.counts)
    assert np.array_equal(counts[0], counts[1])


@pytest.mark.parametrize("rest", [{"order": "release"}, {"type": F16}])
def test_the_verifier_refuses_what_a_swap_of_words_cannot_do(rest: dict[str, Any]) -> None:
    program = specialise(of_f32, {}).program
    body = tuple(_with(s, "min", **rest) for s in program.kernel.body)
    with pytest.raises(VerifyError):
        verify(replace(program, kernel=replace(program.kernel, body=body)))


@pytest.mark.slow
@needs_nvcc
def test_the_printed_loops_compile(tmp_path: Path) -> None:
    texts = []
    for kernel, op in itertools.product((of_f32, of_f64), ("min", "max")):
        request = prepare_request(Extremes(kernel, op), **_launch(kernel, op)[0])
        text = cuda_source(request.program, request.block).text
        assert f"f{op}(" in text and "atomicCAS" in text
        texts.append(f"namespace {kernel.__name__}_{op}_text {{\n{text}\n}}\n")
    (tmp_path / "all.cu").write_text("\n".join(texts))
    command = [str(find_nvcc()), "-cubin", "-arch=sm_90", "-o", "all.cubin", "all.cu"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert finished.returncode == 0, finished.stderr
