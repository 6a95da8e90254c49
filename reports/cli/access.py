"""`simtbed access`: what single warp accesses cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from simtbed import devices

from ..profile.accesses import report
from .options import Device, Json
from .parameters import Argument, Option, command


@command
def access(
    source: Annotated[Path, Argument(metavar="FILE", help="CSV: op, bytes, lanes; with --compare the figures too.")],
    device: Device = "H200",
    compare: Annotated[bool, Option(("--compare",), help="Show the rows that differ from the file's figures.")] = False,
    json: Json = False,
) -> int:
    """What single warp accesses cost.

    Requests, sectors, wavefronts and bank conflicts of each row of the file; 1 where a compared row differs.

    \b
    simtbed access accesses.csv --device K40
    simtbed access measured.csv --compare
    """
    text, code = report(source, devices.find(device), as_json=json, compare=compare)
    print(text)
    return code
