"""Memory traffic by warp class, including classes that hit in L1 only."""

from dataclasses import replace

import numpy as np
import pytest
import simtbed as st
from simtbed import devices
from simtbed.model.access_lines import Kind
from simtbed.model.caches import simulate
from simtbed.model.executed_warps import executed_warps
from simtbed.model.instruction_stream import (
    LSU_PIPE,
    PROFILE_WORDS,
    WORDS,
    Field,
    InstructionKind,
    InstructionStream,
    Profile,
)
from simtbed.model.launches import observe
from simtbed.model.sm_simulator import SmWorkload, run
from simtbed.model.traffic import Column
from simtbed.model.wait_probabilities import burst_rate
from simtbed.runtime.request import prepare_request
from simtbed.sass.counts import Counts

from tests.model.launches import observed

H200 = devices.H200
_LOADS = 64


@st.kernel
def rows(x: st.Global[st.f32], out: st.Global[st.f32], TURNS: st.Const) -> None:
    """The first block reads its own line repeatedly, the others one line each."""
    i = st.block.x * st.block_dim.x + st.thread.x
    total = st.f32(0)
    for _ in range(TURNS if st.block.x == 0 else 1):
        total += x[i]
    out[i] = total


@st.kernel
def first_touches(x: st.Global[st.f32], out: st.Global[st.f32], TURNS: st.Const) -> None:
    total = st.f32(0)
    for _ in range(TURNS):
        for k in range(64):
            total += x[32 * k + st.thread.x]
    out[st.thread.x] = total


def test_each_class_has_its_own_hits() -> None:
    launch = observed(rows, 66, TURNS=40)
    classes = np.zeros((66, launch.warps), np.int64)
    classes[0] = 1
    traffic = simulate(launch.lines, H200, 8, 0, cold=True, classes=classes)
    (load,) = np.flatnonzero(traffic.sites[:, Column.L1_HITS])
    few, many = traffic.classes[:, load]
    assert (few + many)[[Column.ACCESSES, Column.LINES, Column.SECTORS, Column.L1_HITS]].tolist() == traffic.sites[
        load
    ][[Column.ACCESSES, Column.LINES, Column.SECTORS, Column.L1_HITS]].tolist()
    assert few[Column.L1_HITS] == 0 and few[Column.L2_WAITS] == few[Column.ACCESSES] == 65 * launch.warps
    assert many[Column.L1_HITS] == 39 / 40 * many[Column.SECTORS] and many[Column.L2_WAITS] == launch.warps
    together = simulate(launch.lines, H200, 8, 0, cold=True)
    assert together.sites.tolist() == traffic.sites.tolist()


def loads(*likely: float) -> InstructionStream:
    """Return dependent loads and an exit, of as many warps and classes as probabilities to wait for L2."""
    kinds = np.arange(len(likely))
    counts = Counts(
        H200, np.arange(_LOADS + 1) == _LOADS, len(likely), starts={0: np.ones_like(kinds)}, _paths=[kinds << 32]
    )
    warps = replace(executed_warps(counts, kinds, len(likely), False), class_of=kinds)
    code = np.zeros((_LOADS + 1, WORDS), np.int64)
    code[:, Field.STALL], code[:, [Field.WRITES, Field.READS, Field.PIPE]] = 1, -1
    code[:_LOADS, Field.PIPE], code[:_LOADS, Field.KIND], code[:_LOADS, Field.WRITES], code[:_LOADS, Field.LATENCY] = (
        LSU_PIPE,
        InstructionKind.GLOBAL,
        0,
        H200.timing.l1,
    )
    code[1:, Field.WAITS] = 1
    memory = np.zeros((len(likely), len(code), PROFILE_WORDS))
    memory[:, :_LOADS, Profile.ACCESS_FRACTION], memory[:, :_LOADS, Profile.LSU_CYCLES] = 1.0, 1.0
    memory[:, :_LOADS, Profile.L2_PROBABILITY] = np.array(likely)[:, None]
    memory[:, :_LOADS, 2] = 1e-9
    return InstructionStream(code, memory, warps)


@pytest.mark.parametrize("kind", [0, 1])
def test_a_class_waits_for_what_it_finds(kind: int) -> None:
    stream = loads(0.0, 1.0)
    cycles = run(SmWorkload(stream, H200, np.full((1, 1), kind), 1, 1.0, 1, len(stream.code)), {}).cycles
    latency = (H200.timing.l1, H200.timing.l2)[kind]
    assert cycles == pytest.approx(_LOADS * latency, rel=0.1)


def test_unrolled_instructions_wait_as_often_as_a_loop() -> None:
    stream = loads(0.25)
    cycles = run(SmWorkload(stream, H200, np.zeros((1, 1), np.int64), 1, 1.0, 1, len(stream.code)), {}).cycles
    mean = 0.75 * H200.timing.l1 + 0.25 * H200.timing.l2
    assert cycles == pytest.approx(_LOADS * mean, rel=0.1)


def test_accesses_wait_one_after_the_other_or_here_and_there() -> None:
    """A tenth of the loads wait, in bursts of twenty per warp or independently."""
    stream = loads(0.1)
    independent, bursts = (np.array(stream.memory) for _ in range(2))
    bursts[:, :, Profile.BURST_SHARE] = 0.1 / 20
    mean = 32 * _LOADS * (0.9 * H200.timing.l1 + 0.1 * H200.timing.l2)
    for memory in (independent, bursts):
        one_by_one = np.zeros((32, 1), np.int64)
        cycles = run(
            SmWorkload(replace(stream, memory=memory), H200, one_by_one, 1, 1.0, 1, len(stream.code)), {}
        ).cycles
        assert cycles == pytest.approx(mean, rel=0.15)


@pytest.mark.parametrize(("repetitions", "lasting"), [(1, False), (9, True)])
def test_what_is_waited_for_at_first_and_never_again_lasts(repetitions: int, lasting: bool) -> None:
    """Each warp reads 64 lines of its own in order, once or repeatedly."""
    kernel_args = {"x": np.zeros(64 * 32, np.float32), "out": np.zeros(32, np.float32), "TURNS": repetitions}
    request = prepare_request(first_touches, grid=1, block=32, args=kernel_args, device=H200)
    traffic = simulate(observe(request).lines, H200, 1, 0, cold=True)
    (load,) = np.flatnonzero((traffic.kinds == Kind.LOAD) & (traffic.sites[:, Column.ACCESSES] > 0))
    site = traffic.sampled.sum(0)[load]
    assert site[Column.L2_WAITS] == 64 and site[Column.REPEATED_WAITS] == 63
    assert (0 < burst_rate(site) < 0.05) == lasting
