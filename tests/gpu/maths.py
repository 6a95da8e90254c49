"""Dense sweep of every mathematical function on a GPU: its distance from the emulator, and a sample of its bits.

    python -m tests.gpu.maths --out FOLDER
    python -m tests.gpu.maths --portable FILE

FOLDER/maths.json has, for each row and type, the largest distance and its operands. FOLDER/sample.npz has the GPU's
results on an evenly spaced subset of the sweep; `--compare FOLDER` compares a changed emulator with them without a GPU.
`--portable` compares the bits of portable mathematics with the emulator, and writes the times of both kinds to a JSON file:
milliseconds of a kernel with one call for each of 64 Mi elements, medians of 7.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.engine import CudaEngine, describe
from simtbed.engines.cuda.printer import cuda_source
from simtbed.ir.maths import ROWS
from simtbed.ir.op import BITS, Op, ulp_distance
from simtbed.language.types import Scalar
from simtbed.runtime.engine import MATHS, Maths
from simtbed.testing.conformance.operations import request

from tests.gpu.sweep import Values, sweep

COUNT = 1 << 21
SAMPLED = 1 << 15
TIMED, TIMED_COUNT = 7, 1 << 26


def rows() -> Iterator[tuple[str, Op, Scalar]]:
    """Yield the name of each row and type, the row and the type."""
    for row in ROWS:
        for type in row.types:
            yield f"{row.name} {type}", row, type


def compared(row: Op, type: Scalar, operands: tuple[Values, ...], gpu_values: Values) -> dict[str, Any]:
    """Return the distance of the emulator from the GPU on the operands that the row's policy covers; the worst operands first."""
    with np.errstate(all="ignore"):
        emulated, keep = row.meaning(*operands), row.comparable(*operands)
        wrong = keep & ~row.policy_for(type).agree(gpu_values, emulated)
        numbers = keep & (gpu_values == gpu_values) & (emulated == emulated)
        ulps = np.where(
            numbers, ulp_distance(gpu_values, emulated) if gpu_values.dtype.kind == "f" else gpu_values != emulated, 0
        )
        distance = np.where(ulps > 0, np.abs(gpu_values.astype(np.float64) - emulated.astype(np.float64)), 0.0)
    rank = np.where(wrong, np.uint64(1 << 63), np.uint64(0)) | ulps.astype(np.uint64)
    worst = np.argpartition(rank, -8)[-8:]
    worst = worst[np.argsort(rank[worst], kind="stable")[::-1]]
    shown = [
        {"operands": [_exact(a[n]) for a in operands], "gpu": _exact(gpu_values[n]), "emulator": _exact(emulated[n])}
        for n in worst
        if rank[n]
    ]  # fmt: skip
    return {
        "operands": int(keep.sum()), "wrong": int(wrong.sum()), "ulp": int(ulps.max()), "differing": int((ulps > 0).sum()),
        "absolute": float(np.nanmax(distance, initial=0.0)), "worst": shown,
    }  # fmt: skip


def report_line(entry: dict[str, Any]) -> str:
    """Return one line about a row."""
    summary = (
        f"{entry['ulp']} ulp, {entry['differing']} of {entry['operands']} differ, by at most {entry['absolute']:.3g}"
    )
    return f"{summary}; {entry['wrong']} BEYOND THE POLICY: {entry['worst'][:2]}" if entry["wrong"] else summary


def _exact(value: Any) -> str:
    return float(value).hex() if value.dtype.kind == "f" else str(value)


def sampled(count: int) -> slice:
    """Return the slice of a sweep that the sample holds."""
    return slice(None, None, max(1, count // SAMPLED))


def measure(folder: Path) -> None:
    """Run every row on the GPU."""
    folder.mkdir(parents=True, exist_ok=True)
    gpu, engine = describe(), CudaEngine()
    compile_all(gpu["arch"], "native")
    report: dict[str, Any] = {}
    sample: dict[str, Values] = {}
    for name, row, type in rows():
        launch, operands = request((type, (row,)), sweep(row, type, COUNT))
        gpu_values = engine.run(replace(launch, maths="native")).buffers[f"out_{row.name}"]
        report[name] = {"policy": str(row.policy_for(type)), **compared(row, type, operands, gpu_values)}
        sample[name] = gpu_values[sampled(len(gpu_values))]
        print(f"{name}: {report_line(report[name])}", flush=True)
    np.savez_compressed(folder / "sample.npz", allow_pickle=False, **sample)
    (folder / "maths.json").write_text(json.dumps({"gpu": gpu, "rows": report}, indent=1) + "\n", encoding="utf-8")


def compile_all(arch: str, maths: Maths) -> None:
    """Compile every row in parallel."""
    launches = [request((type, (row,)))[0] for _, row, type in rows()]
    sources = [cuda_source(launch.program, launch.block, maths) for launch in launches]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda s: nvcc.build(s.with_lines(), s.kernel, arch), sources))


def compare_portable(file: Path) -> int:
    """Compare the bits of portable mathematics with the emulator; time both kinds. Return the number of differing results."""
    gpu, engine, report, differing = describe(), CudaEngine(), {}, 0
    for maths in MATHS:
        compile_all(gpu["arch"], maths)
    for name, row, type in rows():
        launch, operands = request((type, (row,)), sweep(row, type, COUNT))
        launches = {maths: replace(launch, maths=maths) for maths in MATHS}
        values = engine.run(launches["portable"]).buffers[f"out_{row.name}"]
        with np.errstate(all="ignore"):
            wrong = row.comparable(*operands) & ~BITS.agree(values, row.meaning(*operands))
        large, _ = request((type, (row,)), tuple(np.resize(operand, TIMED_COUNT) for operand in operands))
        times = {maths: median(engine.time(replace(large, maths=maths), TIMED)) for maths in MATHS}
        report[name] = {"operands": len(values), "differing": int(wrong.sum()), "milliseconds": times}
        differing += int(wrong.sum())
        cost = times["portable"] / times["native"]
        print(f"{name}: {wrong.sum()} of {len(values)} differ; {cost:.2f} times CUDA's time", flush=True)
    file.write_text(json.dumps({"gpu": gpu, "rows": report}, indent=1) + "\n", encoding="utf-8")
    return differing


def compare(folder: Path) -> None:
    """Compare the current emulator with the sample."""
    sample = np.load(folder / "sample.npz")
    for name, row, type in rows():
        if name not in sample:
            print(f"{name}: not in the sample")
            continue
        operands = sweep(row, type, COUNT)
        kept_operands = tuple(a[sampled(len(a))] for a in operands)
        print(f"{name}: {report_line(compared(row, type, kept_operands, sample[name]))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--out", type=Path)
    chosen.add_argument("--compare", type=Path)
    chosen.add_argument("--portable", type=Path)
    options = parser.parse_args()
    if options.out:
        measure(options.out)
    elif options.portable:
        sys.exit(compare_portable(options.portable) > 0)
    else:
        compare(options.compare)


if __name__ == "__main__":
    main()
