"""Records what this machine's GPU answers: `python -m tests.gpu.record --data FOLDER [--only PATTERN]`.

Every language feature, the op table, and every variant on its data sets is run on the GPU; the answers must be the
emulator's, or nothing is written. With --only, variants that fit, such as "sfs *", take the place of those recorded.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from fnmatch import fnmatchcase
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from simtbed.engines.cuda.engine import CudaEngine, describe
from simtbed.engines.cuda.nvcc import build, find_nvcc, version
from simtbed.engines.cuda.printer import Source, cuda_source
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.kernels import FAMILIES
from simtbed.testing.conformance import FEATURES
from simtbed.testing.conformance.operations import group_id, groups
from simtbed.testing.conformance.operations import request as ops_request

from tests.gpu.measure import ROUNDING, Entry, Recorder, of_feature, of_ops, of_variant

RECORDS = Path(__file__).parent / "records"
DATA = {
    "pairhmm": ("pairhmm/10s.in", "pairhmm/tiny.in"),
    "alignment": ("alignment/edge.tsv", "alignment/ren64.tsv", "alignment/sit2_10s.tsv"),
    "sfs": ("sfs_1000g/small.vcf.gz", "sfs_angsd/beagle.txt"),
    "correction": ("example",),
}
REPEATS = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets (SIMTBED_DATA)")
    parser.add_argument(
        "--only", help="variants to record again, such as 'sfs *'; the others stay as they are recorded"
    )
    parser.add_argument("--out", type=Path, help="default: tests/gpu/records/DEVICE.json")
    options = parser.parse_args()
    jobs = [(f, v, data) for f, sets in DATA.items() for v in FAMILIES[f].variants for data in sets]
    jobs = [job for job in jobs if fnmatchcase(" ".join(job[:2]), options.only or "*")]
    names = [" ".join(job) for job in jobs]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        emulated = dict(zip(names, pool.map(partial(emulate, options.data), jobs), strict=True))
    print(f"{len(names)} runs emulated", file=sys.stderr)

    gpu: dict[str, Any] = {**describe(), "toolkit": version(find_nvcc())}
    name = gpu["device"].lower().removeprefix("nvidia ").replace(" ", "_")
    path = options.out or RECORDS / f"{name}.json"
    record: dict[str, Any] = json.loads(path.read_text()) if options.only else {"variants": {}, "waiting": []}
    if options.only and any(record[key] != gpu[key] for key in gpu):
        print(f"{path}: was recorded with {[record[key] for key in gpu]}, not {list(gpu.values())}", file=sys.stderr)
        return 1
    record |= gpu
    features = {} if options.only else {f.name: of_feature(f, "numpy") for f in FEATURES}
    sources = [s for recorder in (*features.values(), *emulated.values()) for s in recorder.sources.values()]
    requests = [] if options.only else [ops_request(group)[0] for group in groups()]
    compile_all([*sources, *(cuda_source(r.program, r.block) for r in requests)], gpu["arch"])
    print("all kernels compiled", file=sys.stderr)

    wrong: list[str] = []
    for (family, variant, data), name in zip(jobs, names, strict=True):
        run = partial(of_variant, family, variant, options.data / data, "cuda")
        found = run()
        record["variants"][name] = {**timed(found, run), "rounding": found.rounding(emulated[name])}
        if record["variants"][name]["rounding"] > ROUNDING:
            wrong.append(f"{name}: rounded outputs are {record['variants'][name]['rounding']} apart")
    wrong += different(record["variants"], emulated)
    recorded = {" ".join(job[:2]) for job in jobs}
    record["waiting"] = [name for name in record["waiting"] if name not in recorded]
    if not options.only:
        record["features"] = {f.name: of_feature(f, "cuda").entry() for f in FEATURES}
        record["ops"], apart = recorded_ops()
        wrong += different(record["features"], features) + apart
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"wrote {path}")
    return 0


def emulate(folder: Path, job: tuple[str, str, str]) -> Recorder:
    """What the emulator computes of one variant and data set."""
    family, variant, data = job
    return of_variant(family, variant, folder / data, "jit")


def recorded_ops() -> tuple[dict[str, Entry], list[str]]:
    """The op table on the GPU, and the rows that are not the emulator's or beyond their policy."""
    record: dict[str, Entry] = {}
    wrong: list[str] = []
    for group in groups():
        record[group_id(group)] = of_ops(group, CudaEngine())
        emulated, found = of_ops(group, NumpyEngine())["rows"], record[group_id(group)]["rows"]
        for row in group[1]:
            exact = row.policy.name == "bits"
            if found[row.name] != emulated[row.name] if exact else found[row.name]["ulp"] > row.policy.ulp:
                wrong.append(f"{row.name} of {group[0]}: {found[row.name]}")
    return record, wrong


def different(gpu: dict[str, Entry], emulated: dict[str, Recorder]) -> list[str]:
    """Names whose sources or outputs are not the emulator's."""
    return [
        f"{name}: {key} differs"
        for name, recorder in emulated.items()
        for key in ("sources", "output")
        if gpu[name][key] != recorder.entry()[key]
    ]


def compile_all(sources: Iterable[Source], arch: str) -> None:
    """Fill the cache of compiled kernels, many at a time."""
    fresh = {source.text: source for source in sources}
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda s: build(s.with_lines(), s.kernel, arch), fresh.values()))


def timed(first: Recorder, run: Callable[[], Recorder]) -> Entry:
    """The entry of a variant that has run once, with the time of its kernels: the median over further whole runs, as
    kernels may change what they are given."""
    milliseconds = statistics.median(run().milliseconds for _ in range(REPEATS))
    return {**first.entry(), "registers": first.registers, "milliseconds": round(milliseconds, 4)}


if __name__ == "__main__":
    sys.exit(main())
