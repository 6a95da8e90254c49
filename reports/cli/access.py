"""`simtbed access`: what single warp accesses cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..profile.accesses import report
from ..selection import find_device
from .options import Device, Json, new_app

app = new_app()


@app.command()
def access(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV: op, bytes, lanes; with --compare the figures too.")
    ],
    device: Device = "H200",
    compare: Annotated[
        bool, typer.Option("--compare", help="Show the rows that differ from the file's figures.")
    ] = False,
    json: Json = False,
) -> int:
    """What single warp accesses cost.

    Requests, sectors, wavefronts and bank conflicts of each row of the file; 1 where a compared row differs.
    """
    text, code = report(source, find_device(device), as_json=json, compare=compare)
    print(text)
    return code
