"""`simtbed access`: what single warp accesses cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ..profile.accesses import report
from ..selection import find_device
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
    """
    text, code = report(source, find_device(device), as_json=json, compare=compare)
    print(text)
    return code
