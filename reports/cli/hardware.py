"""`simtbed hardware`: the emulator's counters beside those that a GPU's record holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click
from simtbed import devices

from .. import tables
from ..hardware import compare as comparison
from ..hardware import record, text
from ..hardware.cases import VARIANTS
from ..terminal import progress
from .options import Cases, Json
from .parameters import Option, command


@command
def compare(
    device: Annotated[str, Option(metavar="NAME", help="A device whose record is kept, or a record file.")] = "H200",
    cases: Cases = None,
    markdown: Annotated[bool, Option(("--markdown",), help="The full report, as Markdown.")] = False,
    json: Json = False,
) -> int:
    """The emulator beside a record, on any machine; 1 where a figure falls short and no reason is known.

    \b
    simtbed hardware compare
    simtbed hardware compare --markdown --device h200.json
    """
    source = Path(device) if device.endswith(".json") else record.path_of(devices.find(device).name)
    with progress("the emulator"):
        found = comparison.compare(record.load(source), cases or [VARIANTS])
    print(tables.as_json(text.content(found)) if json else text.markdown(found) if markdown else text.table(found))
    return int(not found.holds)


@click.group()
def hardware() -> None:
    """The emulator's counters beside Nsight Compute's.

    \b
    simtbed hardware compare
    """


hardware.add_command(compare)
