"""`simtbed doctor`: available and missing components of this machine, with remedies."""

from __future__ import annotations

from .. import tables
from ..components import components
from ..printing import print_text
from .options import Json
from .parameters import command


@command
def doctor(json: Json = False) -> int:
    """List available and missing components of this machine, with remedies.

    The exit code is 0 even if components are missing.

    \b
    simtbed doctor
    simtbed doctor --json
    """
    listed = components()
    if json:
        print_text(tables.as_json({"parts": [component.content() for component in listed]}))
        return 0
    rows = [[c.name, "works" if c.works else "missing", c.detail or c.needed_for] for c in listed]
    print_text(tables.table(["component", "", "version, or purpose"], rows, left=3))
    for component in listed:
        if not component.works:
            print_text(f"\n{component.name}: {component.reason}\n      {component.remedy}")
    return 0
