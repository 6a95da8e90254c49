"""`simtbed doctor`: what works on this machine, what is missing, and what brings it."""

from __future__ import annotations

from .. import tables
from ..machine_parts import parts
from .options import Json
from .parameters import command


@command
def doctor(json: Json = False) -> int:
    """What works on this machine, what is missing, and what brings it.

    What is missing is a fact and no error: the exit code is 0.

    \b
    simtbed doctor
    simtbed doctor --json
    """
    found = parts()
    if json:
        print(tables.as_json({"parts": [part.content() for part in found]}))
        return 0
    rows = [[part.name, "works" if part.works else "missing", part.found or part.needed_for] for part in found]
    print(tables.table(["part", "", "what there is, or what it is for"], rows, left=3))
    for part in found:
        if not part.works:
            print(f"\n{part.name}: {part.reason}\n      {part.remedy}")
    return 0
