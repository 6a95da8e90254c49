"""Barriers in shared memory: deadlocks named by their element, refusals, and the printed instructions."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, f32, i32
from simtbed.engines.cuda import nvcc
from simtbed.runtime.registry import EngineName
from simtbed.testing.conformance import FEATURES

from tests.checkers.corpus import PAIRS
from tests.compilers import needs_nvcc
from tests.table_checks import each_row


@pytest.mark.slow
@each_row(["numpy", "jit", "python"])
def test_deadlocks_are_named_by_the_barrier(engine: EngineName) -> None:
    (fault,) = PAIRS["bytes_that_nothing_completes"].launch(False, engine).faults
    assert fault.message == "deadlock: waits for the barrier barriers[1]: 0 arrivals and 16 bytes are pending"


@st.kernel
def _arrive(barriers: Global[st.u64]) -> None:
    st.mbarrier_arrive(barriers, 0)


@st.kernel
def _unbarred(out: Global[i32]) -> None:
    barriers = st.shared(st.u64, 1)
    barriers[0] = st.u64(7)
    st.sync()
    st.mbarrier_arrive(barriers, 0)


@st.kernel
def _several(out: Global[i32]) -> None:
    barriers = st.shared(st.u64, 1)
    st.mbarrier_init(barriers, 0, 64)
    st.mbarrier_arrive(barriers, 0, 2)


@st.kernel
def _misplaced(x: Global[f32], n: i32) -> None:
    barriers = st.shared(st.u64, 1)
    buffer = st.shared(f32, 64)
    st.mbarrier_init(barriers, 0, 1)
    st.bulk_copy(buffer, n, x, 0, 32, barriers, 0)


@st.kernel
def _stored(out: Global[f32], n: i32) -> None:
    buffer = st.shared(f32, 64)
    st.bulk_store(out, n, buffer, 0, 32)
    st.bulk_commit()
    st.bulk_wait()


@st.kernel
def _backward(x: Global[f32]) -> None:
    barriers = st.shared(st.u64, 1)
    buffer = st.shared(f32, 64)
    st.bulk_copy(x, 0, buffer, 0, 32, barriers, 0)


def test_refusals_of_bulk_copies() -> None:
    args: Any = {"x": np.zeros(64, np.float32)}
    with pytest.raises(st.CompileError, match="from global to shared memory, in the kernel itself; x is global f32"):
        st.launch(_backward, grid=1, block=1, args=args)
    for n, message in ((1, "misaligned access: 16 bytes from byte 4 of buffer"), (60, "out of bounds: buffer")):
        fault = st.launch(_misplaced, grid=1, block=1, args={**args, "n": n}, faults="return").faults[0]
        assert message in fault.message
        fault = st.launch(_stored, grid=1, block=1, args={"out": args["x"], "n": n}, faults="return").faults[0]
        assert message.replace("buffer", "out") in fault.message
    with pytest.raises(st.LaunchError, match=r"st\.bulk_store needs compute capability 9\.0"):
        st.launch(_stored, grid=1, block=1, args={"out": args["x"], "n": 0}, device=st.devices.A100)


def test_refusals() -> None:
    with pytest.raises(st.CompileError, match="mbarrier_arrive works on a shared array of u64, barriers is global u64"):
        st.launch(_arrive, grid=1, block=32, args={"barriers": np.zeros(1, np.uint64)})
    with pytest.raises(st.LaunchError, match=r"st\.mbarrier_arrive needs compute capability 9\.0"):
        st.launch(_several, grid=1, block=32, args={"out": np.zeros(1, np.int32)}, device=st.devices.A100)
    args: Any = {"out": np.zeros(1, np.int32)}
    (fault,) = st.launch(_unbarred, grid=1, block=1, args=args, check="mbarrier", faults="return").faults
    assert fault.message == "this element is no barrier"


@needs_nvcc
@pytest.mark.slow
def test_printed_instructions_compile() -> None:
    for feature in FEATURES:
        if feature.name in ("phases_of_barriers", "bulk_copies", "bulk_stores"):
            source = feature.launch(st.launch).source
            assert "cp.async.bulk.wait_group.read 1;" in source or "mbarrier_try_wait_parity(&barriers[" in source
            assert nvcc.build(source, feature.name, "sm_90").resources.registers > 0
