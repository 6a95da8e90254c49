"""Rates of a GPU's tensor cores: cycles between starts on one scheduler, and the latency, of each `mma.sync` and of `wgmma`.

    python -m tests.gpu.tensor_rates [--iterations 4096] [--engine cuda]

Prints the rows of the GPU's architecture in `emulator/machine/tensor_rates.toml`. One warp with one chain of products gives the
latency; two warps of each scheduler with four chains each give the interval. Groups of one and of five products of a warpgroup give its
latency and its interval, and those of two warpgroups the interval without the wait for the sums.
"""

import argparse
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import simtbed as st
from simtbed.ir.matrices import GROUP_INSTRUCTIONS, INSTRUCTIONS, GroupInstruction, Instruction
from simtbed.language.types import Vector
from simtbed.runtime.registry import EngineName

SCHEDULERS = 4
_TYPES = {"f32": ("float", "f"), "f64": ("double", "d"), "s32": ("int", "r"), "f16": ("unsigned", "r")}


def _source(row: Instruction, chains: int) -> str:
    """Return a kernel whose warps multiply `iterations` times in each chain."""
    operand = _TYPES["f64" if row.a == "f64" else "f16"]
    total = _TYPES[row.total]
    a, b, c = (type.lanes if isinstance(type, Vector) else 1 for type in row.types)
    shape, _, names = row.name.partition(".")
    numbers = iter(range(c + a + b))
    d, *words = ("{" + ", ".join(f"%{next(numbers)}" for _ in range(count)) + "}" for count in (c, a, b))
    products = []
    for chain in range(chains):
        sums = ", ".join(f'"+{total[1]}"(d[{chain}][{n}])' for n in range(c))
        values = ", ".join(
            [f'"{operand[1]}"(a[{n}])' for n in range(a)] + [f'"{operand[1]}"(b[{n}])' for n in range(b)]
        )
        text = f"mma.sync.aligned.{shape}.row.col.{names} {d}, {', '.join(words)}, {d};\\n"
        products.append(f'asm volatile("{text}" : {sums} : {values});')
    return f"""
    __global__ void timed(const {operand[0]} *x, {total[0]} *out, long long *cycles, int iterations) {{
        {operand[0]} a[{a}], b[{b}];
        for (int n = 0; n < {a}; n++) a[n] = x[n];
        for (int n = 0; n < {b}; n++) b[n] = x[n];
        {total[0]} d[{chains}][{c}] = {{}};
        long long begin = clock64();
        #pragma unroll 4
        for (int iteration = 0; iteration < iterations; iteration++) {{
            {" ".join(products)}
        }}
        cycles[threadIdx.x] = clock64() - begin;
        for (int chain = 0; chain < {chains}; chain++)
            for (int n = 0; n < {c}; n++) out[({chains} * threadIdx.x + chain) * {c} + n] = d[chain][n];
    }}"""


def cycles(row: Instruction, chains: int, warps: int, iterations: int, engine: EngineName) -> float:
    """Return the cycles of a warp for each of its products. warps: of the block."""
    type = {"f64": np.float64, "f32": np.float32, "s32": np.int32, "f16": np.uint32}
    count = 8 * 32 * warps * chains
    args: dict[str, Any] = {
        "x": np.zeros(8, np.float64 if row.a == "f64" else np.uint32), "out": st.zeros(count, type[row.total]),
        "cycles": st.zeros(32 * warps, np.int64), "iterations": np.int32(iterations),
    }  # fmt: skip
    kernel = st.cuda_source(_source(row, chains))["timed"]
    result = st.launch(kernel, grid=1, block=32 * warps, args=args, engine=engine)
    return float(np.asarray(result.cycles).max()) / (iterations * chains)


def _group_kernel(row: GroupInstruction, products: int) -> st.Kernel:
    """Return a kernel whose warpgroups multiply groups of products."""
    shape, _, first, second = row.name.split(".")
    kind, sums, count, words = f"{first}.{second}", getattr(st, row.element.name), row.registers, 8 * row.n

    @st.kernel
    def timed(out: st.Global[st.u32], cycles: st.Global[st.i64], iterations: st.i32, in_registers: st.Const) -> None:
        tile_a = st.shared(st.u32, 512)
        tile_b = st.shared(st.u32, words)
        for i in range(st.thread.x, 512, st.block_dim.x):
            tile_a[i] = 0
        for i in range(st.thread.x, words, st.block_dim.x):
            tile_b[i] = 0
        total = st.registers(sums, count)
        for i in st.unroll(range(count)):
            total[i] = st.bitcast(sums, st.u32(0))
        rows = st.uint4(out[0], out[1], out[2], out[3])
        st.fence_async()
        st.sync()
        st.wgmma_fence()
        left = st.matrix_descriptor(0, 128, 256, 0)
        right = st.matrix_descriptor(0, 128, 256, 0)
        begin = st.clock64()
        for _group in range(iterations):
            for _n in st.unroll(range(products)):
                if in_registers:
                    st.wgmma(total, rows, (tile_b, right), shape, kind)
                else:
                    st.wgmma(total, (tile_a, left), (tile_b, right), shape, kind)
            st.wgmma_commit()
            st.wgmma_wait()
        cycles[st.thread.x] = st.clock64() - begin
        for i in st.unroll(range(count)):
            out[st.thread.x * count + i] = st.bitcast(st.u32, total[i])

    return timed


def group_cycles(row: GroupInstruction, place: str, products: int, groups: int, options: argparse.Namespace) -> float:
    """Return the cycles of a group of products. groups: warpgroups of the block."""
    args: dict[str, Any] = {
        "out": np.zeros(128 * groups * row.registers, np.uint32), "cycles": np.zeros(128 * groups, np.int64),
        "iterations": options.iterations // 16, "in_registers": place == "registers",
    }  # fmt: skip
    kernel: Any = _group_kernel(row, products)
    result = st.launch(kernel, grid=1, block=128 * groups, args=args, engine=options.engine)
    return float(np.asarray(result.cycles).max()) / int(args["iterations"])


def _group_rows(options: argparse.Namespace) -> Iterator[str]:
    for total, place in product(("f32", "f16", "s32"), ("shared", "registers")):
        for n in (8, 32, 64, 256):
            row = next(one for one in GROUP_INSTRUCTIONS.values() if (one.part.total, one.n) == (total, n))
            latency = group_cycles(row, place, 1, 1, options)
            intervals = [
                (group_cycles(row, place, 5, groups, options) - group_cycles(row, place, 1, groups, options))
                / (4 * groups)
                for groups in (1, 2)
            ]
            yield f"# {row.name} {place}: latency {latency:.2f}, interval {intervals[0]:.2f}, of two {intervals[1]:.2f}\n"


def main() -> int:
    """Measure; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=4096, help="products of each chain (default 4096)")
    parser.add_argument("--engine", choices=("cuda", "jit", "numpy"), default="cuda")
    options = parser.parse_args()
    lines = []
    for row in INSTRUCTIONS.values():
        latency = cycles(row, 1, 1, options.iterations, options.engine)
        interval = cycles(row, 4, 2 * SCHEDULERS, options.iterations, options.engine) / 2
        lines.append(f'"{row.name}" = [{round(interval)}, {round(latency)}] # {interval:.2f}, {latency:.2f}\n')
    sys.stdout.write("".join([*lines, *_group_rows(options)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
