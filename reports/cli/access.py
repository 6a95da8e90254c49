"""`simtbed access`: cost of single warp accesses."""

from pathlib import Path
from typing import Annotated

from ..printing import print_text
from ..profile.accesses import report
from ..selection import find_device
from .options import Device, Json
from .parameters import Argument, Option, command


@command
def access(
    source: Annotated[
        Path, Argument(metavar="FILE", help="CSV with op, bytes, lanes; with --compare also the counters.")
    ],
    device: Device = "H200",
    compare: Annotated[
        bool, Option(("--compare",), help="Print only the rows with other counters than in FILE.")
    ] = False,
    json: Json = False,
) -> int:
    """Compute the cost of single warp accesses.

    Print requests, sectors, wavefronts and bank conflicts for each row of FILE. With --compare, the exit code is 1 if a
    row differs.

    \b
    simtbed access accesses.csv --device K40
    simtbed access measured.csv --compare
    """
    text, code = report(source, find_device(device), as_json=json, compare=compare)
    print_text(text)
    return code
