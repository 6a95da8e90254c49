"""Every mathematical function over a dense sweep on a GPU: how far the emulator is from it, and a sample of its bits.

    python -m tests.gpu.maths --out FOLDER

FOLDER/maths.json has, for each row and type, the largest distance and the operands where it is. FOLDER/sample.npz has
the GPU's results on every so-manieth operand of the sweep, so that `--compare FOLDER` can hold an emulator that has
changed to them without a GPU.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.engine import CudaEngine, describe
from simtbed.engines.cuda.printer import cuda_source
from simtbed.ir.maths import ROWS
from simtbed.ir.op import Op, ulp_distance
from simtbed.language.types import Scalar
from simtbed.testing.conformance.operations import request

from tests.gpu.sweep import Values, sweep

COUNT = 1 << 21
SAMPLED = 1 << 15


def rows() -> Iterator[tuple[str, Op, Scalar]]:
    """Each row and type, and their name."""
    for row in ROWS:
        for type in row.types:
            yield f"{row.name} {type}", row, type


def compared(row: Op, type: Scalar, given: tuple[Values, ...], found: Values) -> dict[str, Any]:
    """How far the emulator is from the GPU, where the row's policy is meant to hold; the worst operands first."""
    with np.errstate(all="ignore"):
        emulated, keep = row.meaning(*given), row.comparable(*given)
        wrong = keep & ~row.policy_for(type).agree(found, emulated)
        numbers = keep & (found == found) & (emulated == emulated)
        apart = np.where(numbers, ulp_distance(found, emulated) if found.dtype.kind == "f" else found != emulated, 0)
        distance = np.where(apart > 0, np.abs(found.astype(np.float64) - emulated.astype(np.float64)), 0.0)
    rank = np.where(wrong, np.uint64(1 << 63), np.uint64(0)) | apart.astype(np.uint64)
    worst = np.argpartition(rank, -8)[-8:]
    worst = worst[np.argsort(rank[worst], kind="stable")[::-1]]
    shown = [
        {"operands": [_exact(a[n]) for a in given], "gpu": _exact(found[n]), "emulator": _exact(emulated[n])}
        for n in worst
        if rank[n]
    ]  # fmt: skip
    return {
        "operands": int(keep.sum()), "wrong": int(wrong.sum()), "ulp": int(apart.max()), "differing": int((apart > 0).sum()),
        "absolute": float(np.nanmax(distance, initial=0.0)), "worst": shown,
    }  # fmt: skip


def told(found: dict[str, Any]) -> str:
    """A line about a row."""
    said = f"{found['ulp']} ulp, {found['differing']} of {found['operands']} differ, by at most {found['absolute']:.3g}"
    return f"{said}; {found['wrong']} BEYOND THE POLICY: {found['worst'][:2]}" if found["wrong"] else said


def _exact(value: Any) -> str:
    return float(value).hex() if value.dtype.kind == "f" else str(value)


def sampled(count: int) -> slice:
    """Which operands of a sweep are kept."""
    return slice(None, None, max(1, count // SAMPLED))


def measure(folder: Path) -> None:
    """Run every row on the GPU."""
    folder.mkdir(parents=True, exist_ok=True)
    gpu, engine = describe(), CudaEngine()
    launches = [request((type, (row,)))[0] for _, row, type in rows()]
    sources = [cuda_source(launch.program, launch.block) for launch in launches]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda s: nvcc.build(s.with_lines(), s.kernel, gpu["arch"]), sources))
    report: dict[str, Any] = {}
    sample: dict[str, Values] = {}
    for name, row, type in rows():
        launch, given = request((type, (row,)), sweep(row, type, COUNT))
        found = engine.run(launch).buffers[f"out_{row.name}"]
        report[name] = {"policy": str(row.policy_for(type)), **compared(row, type, given, found)}
        sample[name] = found[sampled(len(found))]
        print(f"{name}: {told(report[name])}", flush=True)
    np.savez_compressed(folder / "sample.npz", allow_pickle=False, **sample)
    (folder / "maths.json").write_text(json.dumps({"gpu": gpu, "rows": report}, indent=1) + "\n", encoding="utf-8")


def compare(folder: Path) -> None:
    """Hold the emulator as it is now to the sample."""
    sample = np.load(folder / "sample.npz")
    for name, row, type in rows():
        if name not in sample:
            print(f"{name}: not in the sample")
            continue
        given = sweep(row, type, COUNT)
        own = tuple(a[sampled(len(a))] for a in given)
        print(f"{name}: {told(compared(row, type, own, sample[name]))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--out", type=Path)
    chosen.add_argument("--compare", type=Path)
    options = parser.parse_args()
    if options.out:
        measure(options.out)
    else:
        compare(options.compare)


if __name__ == "__main__":
    main()
