"""`simtbed explain`: algorithm, thread mapping and memory layout of a shipped variant."""

from __future__ import annotations

from typing import Annotated

from simtbed import SimtbedError
from simtbed.kernels import FAMILIES

from .. import tables
from ..explanation import Explanation, explanation
from ..printing import print_text
from .options import Json
from .parameters import Argument, command


@command
def explain(
    variant: Annotated[str, Argument("VARIANT", help="A variant of `simtbed list`, as VARIANT or FAMILY/VARIANT.")],
    json: Json = False,
) -> int:
    """Explain a shipped variant.

    Print the recurrence, the section of the paper, the mapping of work to threads, and a diagram of the memory layout.

    \b
    simtbed explain wavefront
    simtbed explain sfs/iterative
    """
    text = _find(variant)
    print_text(tables.as_json(text.content()) if json else text.text())
    return 0


def _find(name: str) -> Explanation:
    family, _, variant = name.rpartition("/")
    owners = [f for f in FAMILIES.values() if variant in f.variants and family in ("", f.name)]
    if not owners:
        raise SimtbedError(f"there is no variant {name!r}; see `simtbed list`")
    return explanation(owners[0], owners[0].variants[variant])
