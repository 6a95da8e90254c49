"""`simtbed explain`: how a shipped variant works."""

from __future__ import annotations

from typing import Annotated

from simtbed import SimtbedError
from simtbed.kernels import FAMILIES

from .. import tables
from ..explained import Explanation, explanation
from .options import Json
from .parameters import Argument, command


@command
def explain(
    variant: Annotated[str, Argument("VARIANT", help="Of `simtbed list`, perhaps as FAMILY/VARIANT.")],
    json: Json = False,
) -> int:
    """How a shipped variant works.

    What it computes, the paper and its section, what a thread does, and a picture of where values stand in memory.

    \b
    simtbed explain wavefront
    simtbed explain sfs/iterative
    """
    found = _find(variant)
    print(tables.as_json(found.content()) if json else found.text())
    return 0


def _find(name: str) -> Explanation:
    family, _, variant = name.rpartition("/")
    owners = [one for one in FAMILIES.values() if variant in one.variants and family in ("", one.name)]
    if not owners:
        raise SimtbedError(f"{name!r} is no variant: `simtbed list` names them")
    return explanation(owners[0], owners[0].variants[variant])
