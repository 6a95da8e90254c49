"""`simtbed record`: what this machine's GPU answers and counts, as a record."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from simtbed import SimtbedError

from ..hardware import record as records
from ..hardware.cases import VARIANTS
from ..terminal import progress
from .options import Cases
from .parameters import Option, command


@command
def record(
    target: Annotated[
        Path | None,
        Option(
            (
                "--output",
                "-o",
            ),
            metavar="FILE",
            help="Instead of DEVICE.json.",
        ),
    ] = None,
    cases: Cases = None,
    only: Annotated[
        str | None,
        Option(metavar="PATTERN", help="Cases that fit, such as 'sfs *'; FILE keeps its others, if it is there."),
    ] = None,
    data: Annotated[
        Path | None, Option(metavar="FOLDER", help="Published data sets, to run the variants on too.")
    ] = None,
) -> int:
    """What this machine's GPU answers and counts, as a record.

    Answers must be the emulator's, or nothing is written; counters are Nsight Compute's. 1 where an answer differs.

    \b
    simtbed record -o h200.json
    simtbed record -o h200.json --only 'sfs *'
    """
    if target is not None and not target.parent.is_dir():
        raise SimtbedError(f"{target}: there is no folder {target.parent}")
    if only and target is None:
        raise SimtbedError("--only mends a record: name its file with --output")
    if data is not None and not data.is_dir():
        raise SimtbedError(f"{data}: there is no such folder")
    known = records.load(target) if only and target and target.exists() else None
    with progress("the GPU and Nsight Compute"):
        taken, differences = records.take(cases or [VARIANTS], only or "*", data)
    if differences:
        print("\n".join(differences), file=sys.stderr)
        return 1
    path = target or Path(f"{taken.device.lower()}.json")
    records.save(records.merged(known, taken) if known else taken, path)
    print(f"wrote {path}")
    return 0
