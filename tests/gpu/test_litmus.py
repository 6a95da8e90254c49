"""Litmus tests of the memory model of PTX: the outcomes that it forbids, on the emulator and on a GPU, and the races among them.

Each thread of a row runs in a block of its own, for 32 instances in each block. X and Y are elements that start as 0, `R(n)` is the
n-th element of the outcome. A volatile access is a relaxed one; `__threadfence` is a sequentially consistent fence of the device.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import simtbed as st
from simtbed import Result
from simtbed.runtime.registry import EngineName

from tests.table_checks import each_row

INSTANCES = 1024
ENGINES: tuple[EngineName, ...] = ("numpy", "jit")
HEAD = """
#define X x[i]
#define Y y[i]
#define VX (*(volatile int *)&X)
#define VY (*(volatile int *)&Y)
#define R(n) out[4 * i + n]
#define FENCE __threadfence();
#define BLOCK_FENCE __threadfence_block();
__global__ void k(int *x, int *y, int *out) {
    int role = blockIdx.x % THREADS, i = blockIdx.x / THREADS * 32 + threadIdx.x;
"""


@dataclass(frozen=True)
class Litmus:
    """A litmus test. threads: statements of each. forbidden: outcomes that the model forbids, of the elements R(0), R(1), ...

    races: whether two accesses are unordered and one of them is plain.
    """

    name: str
    threads: tuple[str, ...]
    forbidden: tuple[tuple[int, ...], ...] = ()
    races: bool = False

    def run(self, launch: Callable[..., Result], instances: int, **options: object) -> Result:
        roles = " ".join(f"if (role == {n}) {{ {body} }}" for n, body in enumerate(self.threads))
        kernel = st.cuda_source(f"#define THREADS {len(self.threads)}\n{HEAD}{roles} }}")["k"]
        arguments = np.zeros(instances, np.int32), np.zeros(instances, np.int32), np.zeros(4 * instances, np.int32)
        return launch(kernel, grid=instances // 32 * len(self.threads), block=32, args=arguments, **options)


PASSED = "int r = VY; {0} R(0) = r; if (r) R(1) = X; else R(1) = -1;"
TABLE = (
    Litmus("message passing", ("VX = 1; VY = 1;", "R(0) = VY; R(1) = VX;")),
    Litmus("message passing, fences", ("VX = 1; FENCE VY = 1;", "R(0) = VY; FENCE R(1) = VX;"), ((1, 0),)),
    Litmus("message passing, fence of the writer", ("VX = 1; FENCE VY = 1;", "R(0) = VY; R(1) = VX;")),
    Litmus("message passing, fences of the block", ("VX = 1; BLOCK_FENCE VY = 1;", "R(0) = VY; BLOCK_FENCE R(1) = VX;")),
    Litmus("message passing, plain data", ("X = 1; FENCE VY = 1;", PASSED.format("FENCE")), ((1, 0),)),
    Litmus("message passing, plain data, no fence", ("X = 1; VY = 1;", PASSED.format("FENCE")), races=True),
    Litmus("message passing, plain data, block", ("X = 1; BLOCK_FENCE VY = 1;", PASSED.format("BLOCK_FENCE")), races=True),
    Litmus("message passing, exchange", ("X = 1; FENCE atomicExch(&Y, 1);", PASSED.format("FENCE")), ((1, 0),)),
    Litmus("message passing, failed swap", ("X = 1; FENCE atomicCAS(&Y, 7, 1);", PASSED.format("FENCE")), ((1, 0), (1, 1))),
    Litmus("chain of updates", ("X = 1; FENCE atomicAdd(&Y, 1);", "atomicAdd(&Y, 2);", "int r = VY; FENCE R(0) = r; if (r & 1) R(1) = X;"),
           ((1, 0), (3, 0))),
    Litmus("chain ended by a store", ("X = 1; FENCE atomicAdd(&Y, 1);", "VY = 2;", "int r = VY; FENCE R(0) = r; if (r == 2) R(1) = X;"),
           races=True),
    Litmus("store buffering", ("VX = 1; R(0) = VY;", "VY = 1; R(1) = VX;")),
    Litmus("store buffering, fences", ("VX = 1; FENCE R(0) = VY;", "VY = 1; FENCE R(1) = VX;"), ((0, 0),)),
    Litmus("load buffering", ("R(0) = VX; VY = 1;", "R(1) = VY; VX = 1;")),
    Litmus("load buffering, fences", ("R(0) = VX; FENCE VY = 1;", "R(1) = VY; FENCE VX = 1;"), ((1, 1),)),
    Litmus("independent reads", ("VX = 1;", "VY = 1;", "R(0) = VX; R(1) = VY;", "R(2) = VY; R(3) = VX;")),
    Litmus("independent reads, fences", ("VX = 1;", "VY = 1;", "R(0) = VX; FENCE R(1) = VY;", "R(2) = VY; FENCE R(3) = VX;"),
           ((1, 0, 1, 0),)),
    Litmus("coherence of reads", ("VX = 1;", "R(0) = VX; R(1) = VX;"), ((1, 0),)),
    Litmus("coherence of writes", ("VX = 1; VX = 2;", "R(0) = VX; R(1) = VX;"), ((1, 0), (2, 0), (2, 1))),
    Litmus("coherence of a write and a read", ("VX = 1; R(0) = VX;", "VX = 2;"), ((0,),)),
    Litmus("plain coherence", ("X = 1;", "R(0) = X;"), races=True),
    Litmus("atomicity", ("R(0) = atomicAdd(&X, 1);", "R(1) = atomicAdd(&X, 1);"), ((0, 0), (1, 1))),
)  # fmt: skip


@each_row(TABLE, lambda row: row.name)
def test_no_forbidden_outcome(row: Litmus, launch: Callable[..., Result]) -> None:
    outcomes = row.run(launch, INSTANCES).out.reshape(-1, 4)
    for forbidden in row.forbidden:
        assert not (outcomes[:, : len(forbidden)] == forbidden).all(axis=1).any(), f"{forbidden} occurs"


@pytest.mark.slow
@each_row(TABLE, lambda row: row.name)
def test_races_are_those_of_the_model(row: Litmus) -> None:
    for engine in ENGINES:
        result = row.run(st.launch, 32, engine=engine, check="all", faults="return")
        assert {fault.kind for fault in result.faults} == ({"race"} if row.races else set()), result.faults
