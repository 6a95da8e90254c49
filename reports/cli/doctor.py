"""`simtbed doctor`: components of this machine that work, fail and are missing, with remedies."""

from .. import tables
from ..components import components
from ..printing import print_text
from .options import Json
from .parameters import command


@command
def doctor(json: Json = False) -> int:
    """Run a kernel by each front end and engine; list missing components.

    The exit code is 1 if an installed component fails, and 0 if components are missing.

    \b
    simtbed doctor
    simtbed doctor --json
    """
    listed = components()
    code = int(any(component.fails for component in listed))
    if json:
        print_text(tables.as_json({"parts": [component.content() for component in listed]}))
        return code
    rows = [[c.name, c.state, c.detail or c.needed_for] for c in listed]
    print_text(tables.table(["component", "", "version, or purpose"], rows, left=3))
    for component in listed:
        if not component.works:
            print_text(f"\n{component.name}: {component.reason}\n      {component.remedy}")
    return code
