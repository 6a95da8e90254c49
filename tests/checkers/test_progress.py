"""Forward progress: lanes, warps and resident blocks that wait for later ones, as on a GPU."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Device, devices
from simtbed.runtime.registry import EngineName

from tests.table_checks import check_each

ENGINES: tuple[EngineName, ...] = ("numpy", "jit")
HEAD = "__global__ void k(int *flag, int *data, int *out) { int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;"
LOCK = "while (atomicCAS(flag, 0, 1) != 0); __threadfence(); data[0] += 1; __threadfence(); atomicExch(flag, 0);"


@dataclass(frozen=True)
class Wait:
    """The body of a kernel k(int *flag, int *data, int *out), the first elements of out or data, and the kinds of its findings."""

    name: str
    body: str
    out: tuple[int, ...] = ()
    data: tuple[int, ...] = ()
    faults: tuple[str, ...] = ()
    grid: int = 1
    device: Device = devices.H200

    def launch(self, engine: EngineName, check: str = "all") -> Any:
        kernel = st.cuda_source(f"{HEAD} {self.body} }}")["k"]
        arguments = tuple(np.zeros(512, np.int32) for _ in range(3))
        return st.launch(
            kernel, grid=self.grid, block=64, args=arguments, check=check, faults="return", engine=engine, device=self.device,
            step_limit=300,
        )  # fmt: skip


def check(row: Wait) -> None:
    results = [row.launch(engine) for engine in ENGINES]
    for result in results:
        assert tuple(sorted({fault.kind for fault in result.faults})) == row.faults, result.faults
        for name, expected in (("out", row.out), ("data", row.data)):
            assert not expected or tuple(getattr(result, name)[: len(expected)]) == expected
    assert results[0].faults == results[1].faults
    assert np.array_equal(results[0].counts, results[1].counts)


ARMS = (
    "__shared__ int s[64]; if (t % 2) {{ s[t] = t; __syncwarp({0}); out[t] = s[t ^ 1]; }}"
    "else {{ s[t] = t; __syncwarp({1}); out[t] = s[t ^ 1]; }}"
)
SET = "{ data[0] = 7; __threadfence(); atomicExch(flag, 1); }"
AWAIT = "{ while (atomicAdd(flag, 0) == 0); __threadfence(); out[0] = data[0]; }"
LANES = (
    Wait("syncwarp in both arms", ARMS.format("", ""), out=(1, 0, 3, 2)),
    Wait("syncwarp of one arm each", ARMS.format("0xaaaaaaaa", "0x55555555"), faults=("race",)),
    Wait("syncwarp in one arm", "if (t % 2) __syncwarp(); out[t] = t;", faults=("convergence",)),
    Wait("syncwarp in loops", "for (int n = 0; n < t % 4; n++) data[t] += n;"
         "for (int n = 0; n < 3; n++) if (t % 2) __syncwarp(); else __syncwarp();"
         "out[t] = data[t];", out=(0, 0, 1, 3)),
    Wait("collective behind the arms", "int v = t; if (t % 2) { __syncwarp(); v = 9; } else __syncwarp();"
         "out[t] = __shfl_xor_sync(0xffffffff, v, 1);", out=(9, 0, 9, 2)),
    Wait("lock", LOCK, data=(64,)),
    Wait("lock in a loop", f"for (int n = 0; n < 3; n++) {{ if (n == 1 && t % 2) continue; {LOCK} }}", data=(160,)),
    Wait("lock and return", f"if (t > 40) return; {LOCK} if (t % 2) return; out[t] = 1;", out=(1, 0, 1, 0), data=(41,)),
    Wait("unlocked sum", "while (atomicCAS(flag, 0, 1) != 0); data[0] += 1; atomicExch(flag, 0);", faults=("race",)),
    Wait("later lane", f"if (t == 0) {AWAIT} if (t == 3) {SET}", out=(7,)),
    Wait("other arm", f"if (t == 0) {AWAIT} else if (t == 3) {SET}", out=(7,)),
    Wait("later warp", f"if (t == 0) {AWAIT} if (t == 40) {SET}", out=(7,)),
    Wait("nobody", f"if (t == 0) {AWAIT}", faults=("step limit",)),
    Wait("in lockstep", f"if (t == 0) {AWAIT} if (t == 3) {SET}", faults=("step limit",), device=devices.K40),
)  # fmt: skip


SMALL = replace(devices.H200, sms=1, blocks_per_sm=2)
ARRIVE = "data[i] = i; __threadfence(); __syncthreads(); if (t == 0) { atomicAdd(flag, 1);"
LEAVE = "while (*(volatile int *)flag < gridDim.x); __threadfence(); } __syncthreads();"
GRID = f"{ARRIVE} {LEAVE} out[i] = data[(i + 64) % (64 * gridDim.x)];"
TURN = (
    "int b = gridDim.x - 1 - blockIdx.x; if (t == 0) { while (atomicAdd(flag, 0) != b); __threadfence();"
    "data[0] = 3 * data[0] + b; __threadfence(); atomicExch(flag, b + 1); }"
)
UNFENCED = "if (i == 0) { while (atomicAdd(flag, 0) == 0); out[0] = data[0]; } if (i == 64) { data[0] = 7; atomicExch(flag, 1); }"
BLOCKS = (
    Wait("later block", f"if (i == 0) {AWAIT} if (i == 64) {SET}", out=(7,), grid=2),
    Wait("later block without a fence", UNFENCED, faults=("race",), grid=2),
    Wait("barrier of resident blocks", GRID, out=(64, 65, 66), grid=4),
    Wait("barrier without a fence", GRID.replace("__threadfence();", ""), faults=("race",), grid=4),
    Wait("barrier of too many blocks", GRID, faults=("step limit",), grid=4, device=SMALL),
    Wait("descending turns", TURN, data=(0 * 27 + 1 * 9 + 2 * 3 + 3,), grid=4),
    Wait("shared memory", f"__shared__ int s[64]; s[t] = i; {ARRIVE} {LEAVE} out[i] = s[t ^ 1];", out=(1, 0, 3), grid=3),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("rows", [LANES, BLOCKS])
def test_waits_that_end(rows: tuple[Wait, ...]) -> None:
    check_each(rows, check, lambda row: row.name)


def test_a_deadlock_names_the_blocks_that_fit() -> None:
    row = next(row for row in BLOCKS if row.device is SMALL)
    (fault,) = row.launch("jit").faults
    assert fault.message == "deadlock: 4 blocks wait for each other, and H200 holds 2 at once"
    assert fault.notes[1] == "waits for flag[0], which block 2 sets; 2 blocks fit"
    assert "limited by blocks" in fault.notes[-1]
