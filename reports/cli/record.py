"""`simtbed record`: what this machine's GPU answers and counts, as a record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from simtbed import SimtbedError

from ..hardware import record as records
from ..hardware.cases import VARIANTS
from ..terminal import progress
from .options import Cases, new_app
from .output import require_folder

app = new_app()


@app.command()
def record(
    target: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of DEVICE.json.")
    ] = None,
    cases: Cases = None,
    only: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Cases that fit, such as 'sfs *'; FILE keeps its others.")
    ] = None,
) -> int:
    """What this machine's GPU answers and counts, as a record."""
    require_folder(target)
    if only and target is None:
        raise SimtbedError("--only mends a record: name its file with --output")
    known = records.load(target) if only and target else None
    with progress("Nsight Compute"):
        taken = records.take(cases or [VARIANTS], only or "*")
    path = target or Path(f"{taken.device.lower()}.json")
    records.save(records.merged(known, taken) if known else taken, path)
    print(f"wrote {path}")
    return 0
