"""`simtbed record`: record of answers and counters of this machine's GPU."""

from pathlib import Path
from typing import Annotated

from simtbed import SimtbedError
from simtbed.escaping import printable

from ..hardware import record as records
from ..hardware.cases import VARIANTS
from ..printing import print_message, print_text
from ..terminal import progress
from .options import Cases
from .parameters import Option, command


@command
def record(
    target: Annotated[
        Path | None, Option(("--output", "-o"), metavar="FILE", help="Write the record to FILE; default: DEVICE.json.")
    ] = None,
    cases: Cases = None,
    only: Annotated[
        str | None,
        Option(
            metavar="PATTERN", help="Select cases by name, such as 'sfs *'; other cases of an existing FILE remain."
        ),
    ] = None,
    data: Annotated[
        Path | None, Option(metavar="FOLDER", help="Run the variants on the published data sets of FOLDER too.")
    ] = None,
) -> int:
    """Record the answers and counters of this machine's GPU.

    Nsight Compute collects the counters. If an answer differs from that of the emulator, no record is written and the
    exit code is 1.

    \b
    simtbed record -o h200.json
    simtbed record -o h200.json --only 'sfs *'
    """
    if target is not None and not target.parent.is_dir():
        raise SimtbedError(f"{target}: there is no folder {target.parent}")
    if only and target is None:
        raise SimtbedError("--only updates a record: name its file with --output")
    if data is not None and not data.is_dir():
        raise SimtbedError(f"{data}: no such folder")
    older = records.load(target) if only and target and target.exists() else None
    with progress("the GPU and Nsight Compute"):
        newer, differences = records.take(cases or [VARIANTS], only or "*", data)
    if differences:
        print_message("\n".join(differences))
        return 1
    path = target or Path(f"{newer.device.lower()}.json")
    records.save(records.merged(older, newer) if older else newer, path)
    print_text(f"wrote {printable(path)}")
    return 0
