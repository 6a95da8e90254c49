"""The protocol of kernels: another front end's kernel is launched, checked, verified and swept as the language's."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, f32, i32
from simtbed.frontend.launchable import LaunchableKernel, ProgramKernel
from simtbed.frontend.reader import specialise
from simtbed.frontend.signature import KernelParameter, Signature
from simtbed.ir import nodes as ir
from simtbed.testing import verify


@st.kernel
def reversed_block(x: Global[f32], out: Global[f32], n: i32) -> None:
    tile = st.shared(f32, 64)
    t = st.thread.x
    tile[t] = x[t]
    st.sync()
    if t < n:
        out[t] = tile[63 - t]


@st.kernel
def racing_block(x: Global[f32], out: Global[f32]) -> None:
    tile = st.shared(f32, 64)
    t = st.thread.x
    tile[t] = x[t]
    out[t] = tile[63 - t]


@st.kernel
def scaled(x: Global[f32], FACTOR: Const) -> None:
    x[st.thread.x] = x[st.thread.x] * f32(FACTOR)


class Translated(ProgramKernel):
    """A kernel of another language."""

    words = {"st.sync()": "barrier!"}  # noqa: RUF012 - a constant of the class
    text = "the text"


class Overloaded(LaunchableKernel):
    """A kernel whose program depends on a constant and on the number of arguments."""

    __name__ = "overloaded"

    def __init__(self) -> None:
        self.bound = _Scaled()

    def bind(self, args: Any) -> tuple[LaunchableKernel, Any]:
        return self.bound, {"x": args[0], "FACTOR": args[1]}

    def signature(self) -> Signature:
        raise AssertionError("only the bound kernel has parameters")

    specialise: Any = None


Overloaded.__abstractmethods__ = frozenset()


class _Scaled(LaunchableKernel):
    __name__ = "scaled"

    def signature(self) -> Signature:
        program = self.specialise({"FACTOR": 1}, None, {})
        return Signature({**Signature.of_program(program).parameters, "FACTOR": KernelParameter(None)})

    def specialise(self, consts: Mapping[str, Any], real: Any, layouts: Mapping[str, Any]) -> ir.Program:
        return specialise(scaled, consts).program

    def digest(self) -> str:
        return "scaled, version 1"


def _arguments() -> dict[str, Any]:
    return {"x": np.arange(64, dtype=np.float32), "out": st.empty(64, f32)}


def test_a_program_runs_and_counts_as_the_kernel_of_its_text() -> None:
    kernel = Translated(specialise(reversed_block, {}).program)
    shape: dict[str, Any] = {"grid": 1, "block": 64, "args": {**_arguments(), "n": 64}, "check": "all"}
    ours, expected = st.launch(kernel, **shape), st.launch(reversed_block, **shape)
    np.testing.assert_array_equal(ours.out, expected.out)
    assert ours.counts is not None and expected.counts is not None
    assert np.array_equal(ours.counts, expected.counts)
    assert ours.source == "the text" and "__global__" in expected.source


def test_findings_use_the_words_of_the_front_end() -> None:
    kernel = Translated(specialise(racing_block, {}).program)
    result = st.launch(kernel, grid=1, block=64, args=_arguments(), check="races", faults="return")
    text = "\n".join(map(str, result.faults))
    assert result.faults[0].kind == "race" and "barrier!" in text and "st.sync()" not in text
    assert [insertion.statement for insertion in result.faults[0].remedy] == ["barrier!"]


def test_verify_and_profiling_take_such_a_kernel() -> None:
    kernel = Translated(specialise(reversed_block, {}).program)
    args = {**_arguments(), "n": 64}
    with st.profiling() as run:
        verify(kernel, grid=1, block=64, args=args, oracle=lambda x: x[::-1], checked=True)
    assert run.launches and all(launch.kernel.name == "reversed_block" for launch in run.launches)


def test_arguments_choose_the_kernel_and_constants_its_program() -> None:
    x = np.arange(32, dtype=np.float32)
    kernel = Overloaded()
    for factor in (2, 3):
        np.testing.assert_array_equal(st.launch(kernel, grid=1, block=32, args=(x, factor)).x, x * factor)
    table = st.whatif(
        kernel, grid=1, block=32, args=(x, 2), const={"FACTOR": [2, 4]}, source_only=True, not_compared="x"
    )
    assert len(table) == 2


def test_other_objects_are_refused() -> None:
    with pytest.raises(st.LaunchError, match=r"is not a kernel: mark it @st\.kernel"):
        st.launch(print, grid=1, block=1, args={})  # type: ignore[arg-type]
