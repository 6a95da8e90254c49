"""Idioms of CUDA programs that order threads without a barrier: compare-and-swap loops, the last block, and warps assumed in step."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Device, devices
from simtbed.runtime.registry import EngineName

from tests.table_checks import check_each
from tests.texts import texts

ENGINES: tuple[EngineName, ...] = ("numpy", "jit", "python")
COUNTERS = "__device__ unsigned count; __global__ void k(int *x, volatile int *sums, int *out)"
SWAP = "old = atomicCAS(x, assumed, assumed + 1)"


@dataclass(frozen=True)
class Idiom:
    """CUDA C++ of a kernel k(int *x, volatile int *sums, int *out), and the kinds of its findings and remarks."""

    name: str
    body: str
    faults: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    grid: int = 1
    device: Device = devices.H200
    before: str = ""
    engines: tuple[EngineName, ...] = field(default=ENGINES)

    def launch(self, engine: EngineName) -> Any:
        source = st.cuda_source(f"{self.before} {COUNTERS} {{ int t = threadIdx.x; {self.body} }}")
        arguments = (np.zeros(64, np.int32), np.zeros(64, np.int32), np.zeros(64, np.int32))
        return st.launch(
            source["k"], grid=self.grid, block=64, args=arguments, check="all", faults="return", device=self.device, engine=engine,
        )  # fmt: skip


def check(row: Idiom) -> None:
    for engine in row.engines:
        result = row.launch(engine)
        assert tuple(sorted({fault.kind for fault in result.faults})) == row.faults, f"{engine} {result.faults}"
        assert tuple(sorted({remark.kind for remark in result.remarks})) == row.remarks, f"{engine} {result.remarks}"


LOOP = f"do {{ assumed = old; {SWAP}; }} while (assumed != old);"
TEXTS = texts("checkers/idioms.cu")
SWAPS = (
    Idiom("add of f64", "add((double *)x, 1.0);", (), ("benign race",), before=TEXTS["add of doubles"]),
    Idiom("maximum with early exits", "most((float *)x, t);", (), ("benign race",), before=TEXTS["maximum with early exits"]),
    Idiom("byte of a word", "add(x + t % 2, t % 4, 1);", (), ("benign race",), before=TEXTS["add to a byte"]),
    Idiom("result stored", f"int old = x[0], assumed; {LOOP} out[t] = old;", (), ("benign race",)),
    Idiom("attempt", "int old = x[0]; if (old < 3) atomicCAS(x, old, old + 1);", (), ("benign race",)),
    Idiom("verified choice", "int old = x[0]; if (atomicCAS(x, old, old + 1) == old) out[t] = 1;", (), ("benign race",)),
    Idiom("push on a stack", "int old = x[0], assumed; do { assumed = old; out[t] = assumed; __threadfence();"
          "old = atomicCAS(x, assumed, t + 1); } while (old != assumed);", (), ("benign race",)),
    Idiom("pushed value elsewhere", "int old = x[0], assumed; do { assumed = old; out[t + old & 63] = assumed;"
          "old = atomicCAS(x, assumed, t + 1); } while (old != assumed);", ("race",)),
    Idiom("failed swap", "int v = t ? 0 : atomicCAS(x, 5, 1); if (t == 40) sums[0] = x[0]; out[t] = v;"),
    Idiom("test and test-and-set", "bool done = false; while (!done) if (*(volatile int *)x == 0 && atomicCAS(x, 0, 1) == 0) {"
          "__threadfence(); sums[0] += 1; __threadfence(); *(volatile int *)x = 0; done = true; }"),
    Idiom("volatile", f"int old = *(volatile int *)x, assumed; {LOOP}"),
    Idiom("value stored", f"int old = x[0], assumed; out[t] = old; {LOOP}", ("race",)),
    Idiom("other element", "int old = x[1]; atomicCAS(x, old, old + 1); atomicAdd(x + 1, 1);", ("race",)),
    Idiom("computed", "int old = x[0] * 2; atomicCAS(x, old, old + 1);", ("race",)),
    Idiom("not verified", "int old = x[0]; atomicCAS(x, old, old + 1); out[t] = old;", ("race",)),
    Idiom("decides a store", "int old = x[0]; if (old == 3) out[0] = 1; atomicCAS(x, old, old + 1);", ("race",)),
    Idiom("decides a value", "int old = x[0], v = 0; if (old == 3) v = 1; atomicCAS(x, old, old + 1); out[t] = v;", ("race",)),
    Idiom("plain spin", "if (t == 40) atomicCAS(x, 0, 1); if (t == 3) while (x[0] == 0); ", ("race",), engines=("jit",)),
    Idiom("store", f"int old = x[0], assumed; if (t == 40) x[0] = 7; else {{ {LOOP} }}", ("race",), ("benign race",)),
)  # fmt: skip


@pytest.mark.slow
def test_compare_and_swap_loops() -> None:
    check_each(SWAPS, check, lambda row: row.name)


def reset(claim: str, condition: str, end: str = "count = 0;") -> str:
    """Return a body in which thread 0 of each block claims a number, and of some blocks resets the counter."""
    return (
        f"__shared__ unsigned mine; if (t == 0) {{ {claim} }} __syncthreads(); if (t == 0 && {condition}) {{ {end} }}"
    )


CLAIM = "mine = atomicInc(&count, gridDim.x);"
RESETS = (
    Idiom("last block", reset(CLAIM, "mine == gridDim.x - 1"), grid=4),
    Idiom("add", reset("mine = atomicAdd(&count, 1);", "mine == gridDim.x - 1"), grid=4),
    Idiom("read", reset(CLAIM, "mine == gridDim.x - 1", "out[0] = count;"), grid=4),
    Idiom("another thread", "__shared__ unsigned mine; if (t == 0) { " + CLAIM + " } __syncthreads();"
          "if (t == 40 && mine == gridDim.x - 1) count = 0;", grid=4),
    Idiom("last lane", "if (atomicAdd(&count, 1) == 63) count = 0;"),
    Idiom("first block", reset(CLAIM, "mine == 0"), ("race",), grid=4),
    Idiom("result unused", reset("atomicAdd(&count, 1);", "blockIdx.x == 3"), ("race",), grid=4),
    Idiom("no own operation", reset(f"if (blockIdx.x < 3) {CLAIM}", "blockIdx.x == 3"), ("race",), grid=4),
    Idiom("every thread", "atomicAdd(&count, 1); if (t == 0) count = 0;", ("race",)),
)  # fmt: skip


@pytest.mark.slow
def test_counters_that_the_last_thread_resets() -> None:
    check_each(RESETS, check, lambda row: row.name)


STEPS = " ".join(f"s[t] += s[t + {n}];" for n in (16, 8, 4, 2, 1))
FILL = "__shared__ volatile int s[64]; s[t] = x[t]; __syncthreads();"
SYNCHRONISED = " ".join(f"v += s[t + {n}]; __syncwarp(); s[t] = v; __syncwarp();" for n in (32, 16, 8, 4, 2, 1))
EXCHANGES = (
    Idiom("reduction", f"{FILL} if (t < 32) {{ s[t] += s[t + 32]; {STEPS} out[t] = s[0]; }}", ("race",)),
    Idiom("in step", f"{FILL} if (t < 32) {{ s[t] += s[t + 32]; {STEPS} out[t] = s[0]; }}", device=devices.K40),
    Idiom("synchronised", f"{FILL} if (t < 32) {{ int v = s[t]; {SYNCHRONISED} }}"),
    Idiom("function", f"{FILL} if (t < 32) warp(s, t);", ("race",), before=f"__device__ void warp(volatile int *s, int t) {{ {STEPS} }}"),
    Idiom("mask", f"{FILL} if (t < 16) {{ s[t] += s[t + 8]; }} if (t == 40) out[0] = s[0];", ("race",)),
    Idiom("in lines", f"{FILL} s[t] = t; out[t] = s[t ^ 1];", ("race",)),
    Idiom("own update first", f"{FILL} s[t] = s[t] + 1; out[t] = s[t ^ 1];", ("race",)),
    Idiom("global memory", "sums[t] = x[t]; out[t] = sums[t ^ 1];", ("race",)),
    Idiom("other warp", f"{FILL} out[t] = s[t ^ 32];"),
    Idiom("own element", f"{FILL} s[t] += 1; out[t] = s[t];"),
    Idiom("found", "for (int i = 0; i < 8; i++) { if (sums[0]) break; if (x[t] + i == t) sums[0] = 1; }"),
    Idiom("same instruction", "sums[0] = 1;"),
    Idiom("fence", f"{FILL} s[t] = t; __threadfence_block(); out[t] = s[t ^ 1];", ("race",)),
)  # fmt: skip


@pytest.mark.slow
def test_volatile_exchanges_of_a_warp() -> None:
    check_each(EXCHANGES, check, lambda row: row.name)


@pytest.mark.slow
def test_the_finding_names_the_assumption_and_the_barrier() -> None:
    (fault, *_) = EXCHANGES[0].launch("jit").faults
    assert "between lanes that are assumed in step" in fault.message
    assert fault.notes[0].startswith(("reads: ", "writes: "))
    assert "__syncwarp()" in fault.notes[-1]
    assert "volatile does not order them" in fault.notes[-1]
