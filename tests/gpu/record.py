"""Records what this machine's GPU answers: `python -m tests.gpu.record --data FOLDER`.

Every language feature, the op table, and every variant on its data set is run on the GPU; the answers must be
the numpy engine's, or nothing is written.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from simtbed.emulator.engines.cuda_run import CudaEngine, describe
from simtbed.emulator.engines.numpy_engine import NumpyEngine
from simtbed.kernels import FAMILIES

from tests.gpu.measure import Entry, of_feature, of_ops, of_variant
from tests.language.all_features import FEATURES
from tests.ops.programs import group_id, groups

RECORDS = Path(__file__).parent / "records"
DATA = {"pairhmm": ("pairhmm/10s.in", "pairhmm/tiny.in")}
SAME = ("sources", "output", "rows")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets (SIMTBED_DATA)")
    parser.add_argument("--out", type=Path, help="default: tests/gpu/records/DEVICE.json")
    options = parser.parse_args()
    record: dict[str, Any] = describe()
    cuda, numpy = CudaEngine(), NumpyEngine()
    wrong: list[str] = []

    def keep(section: str, name: str, gpu: Entry, emulated: Entry) -> None:
        record.setdefault(section, {})[name] = gpu
        for key in SAME:
            if key in gpu and key != "rows" and gpu[key] != emulated[key]:
                wrong.append(f"{section} {name}: {key} differs")
        for row, found in gpu.get("rows", {}).items():
            allowed = {"ulp": 2, "value": 0}.get(found.get("policy", ""))
            if (found != emulated["rows"][row]) if allowed is None else found["ulp"] > allowed:
                wrong.append(f"{section} {name}: {row} gives {found}")

    for feature in FEATURES:
        keep("features", feature.name, of_feature(feature, "cuda"), of_feature(feature, "numpy"))
    for group in groups():
        keep("ops", group_id(group), of_ops(group, cuda), of_ops(group, numpy))
    jobs = [
        (family, variant, data)
        for family, sets in DATA.items()
        for variant in FAMILIES[family].variants
        for data in sets
    ]
    gpu = [of_variant(family, variant, options.data / data, "cuda") for family, variant, data in jobs]
    with ThreadPoolExecutor(min(len(jobs), os.cpu_count() or 1)) as pool:
        emulated = list(pool.map(lambda job: of_variant(job[0], job[1], options.data / job[2], "numpy"), jobs))
    for (_, variant, data), found, expected in zip(jobs, gpu, emulated, strict=True):
        keep("variants", f"{variant} {data}", found, expected)
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    path = options.out or RECORDS / f"{record['device'].lower().removeprefix('nvidia ').replace(' ', '_')}.json"
    path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
