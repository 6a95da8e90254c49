"""`simtbed hardware`: the emulator's counters beside those that a GPU's record holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import tables
from ..hardware import compare as comparison
from ..hardware import record, text
from ..hardware.cases import VARIANTS
from ..selection import find_device
from ..terminal import progress
from .options import Cases, Json, new_app

app = new_app()


@app.callback()
def hardware() -> None:
    """The emulator's counters beside Nsight Compute's."""


@app.command()
def compare(
    device: Annotated[
        str, typer.Option(metavar="NAME", help="A device whose record is kept, or a record file.")
    ] = "H200",
    cases: Cases = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The full report, as Markdown.")] = False,
    json: Json = False,
) -> int:
    """The emulator beside a record, on any machine; 1 where a figure falls short and no reason is known."""
    source = Path(device) if device.endswith(".json") else record.path_of(find_device(device).name)
    with progress("the emulator"):
        found = comparison.compare(record.load(source), cases or [VARIANTS])
    print(tables.as_json(text.content(found)) if json else text.markdown(found) if markdown else text.table(found))
    return int(not found.holds)
