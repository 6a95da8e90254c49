"""Records what this machine's GPU answers: `python -m tests.gpu.record --data FOLDER`.

Every language feature, the op table, and every variant on its data sets is run on the GPU; the answers must be the
emulator's, or nothing is written.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from simtbed.emulator.engines.cuda_build import build, find_nvcc, version
from simtbed.emulator.engines.cuda_run import CudaEngine, describe
from simtbed.emulator.engines.cuda_source import cuda_source
from simtbed.emulator.engines.engine import Request
from simtbed.emulator.engines.numpy_engine import NumpyEngine
from simtbed.kernels import FAMILIES

from tests.gpu.measure import ROUNDING, Entry, Recorder, of_feature, of_ops, of_variant
from tests.language.all_features import FEATURES
from tests.ops.programs import group_id, groups
from tests.ops.programs import request as ops_request

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
    parser.add_argument("--out", type=Path, help="default: tests/gpu/records/DEVICE.json")
    options = parser.parse_args()
    record: dict[str, Any] = {**describe(), "toolkit": version(find_nvcc())}
    features = {f.name: of_feature(f, "numpy") for f in FEATURES}
    jobs = [(f, v, data) for f, sets in DATA.items() for v in FAMILIES[f].variants for data in sets]
    variants = {f"{f} {v} {data}": of_variant(f, v, options.data / data, "jit") for f, v, data in jobs}
    requests = [r for recorder in (*features.values(), *variants.values()) for r in recorder.requests]
    compile_all([*requests, *(ops_request(group)[0] for group in groups())], record["arch"])

    wrong: list[str] = []
    record["features"] = {f.name: of_feature(f, "cuda").entry() for f in FEATURES}
    wrong += different(record["features"], features)
    record["waiting"] = []
    record["variants"] = {}
    for (family, variant, data), name in zip(jobs, variants, strict=True):
        run = partial(of_variant, family, variant, options.data / data, "cuda")
        found = run()
        record["variants"][name] = {**timed(found, run), "rounding": found.rounding(variants[name])}
        if record["variants"][name]["rounding"] > ROUNDING:
            wrong.append(f"{name}: rounded outputs are {record['variants'][name]['rounding']} apart")
    wrong += different(record["variants"], variants)
    record["ops"] = {group_id(group): of_ops(group, CudaEngine()) for group in groups()}
    for group in groups():
        emulated, found = of_ops(group, NumpyEngine())["rows"], record["ops"][group_id(group)]["rows"]
        for row in group[1]:
            exact = row.policy.name == "bits"
            if found[row.name] != emulated[row.name] if exact else found[row.name]["ulp"] > row.policy.ulp:
                wrong.append(f"{row.name} of {group[0]}: {found[row.name]}")
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    device = record["device"].lower().removeprefix("nvidia ").replace(" ", "_")
    path = options.out or RECORDS / f"{device}.json"
    path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"wrote {path}")
    return 0


def different(gpu: dict[str, Entry], emulated: dict[str, Recorder]) -> list[str]:
    """Names whose sources or outputs are not the emulator's."""
    return [
        f"{name}: {key} differs"
        for name, recorder in emulated.items()
        for key in ("sources", "output")
        if gpu[name][key] != recorder.entry()[key]
    ]


def compile_all(requests: list[Request], arch: str) -> None:
    """Fill the cache of compiled kernels, many at a time."""
    sources = {source.text: source for source in (cuda_source(r.program, r.block) for r in requests)}
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda s: build(s.with_lines(), s.kernel, arch), sources.values()))


def timed(first: Recorder, run: Callable[[], Recorder]) -> Entry:
    """The entry of a variant that has run once, with the time of its kernels: the median over further whole runs, as
    kernels may change what they are given."""
    milliseconds = statistics.median(run().milliseconds for _ in range(REPEATS))
    return {**first.entry(), "registers": first.registers, "milliseconds": round(milliseconds, 4)}


if __name__ == "__main__":
    sys.exit(main())
