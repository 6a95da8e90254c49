"""`simtbed explain`: algorithm, thread mapping and memory layout of a shipped variant."""

from typing import Annotated

from .. import tables
from ..explanation import explanation
from ..printing import print_text
from ..selection import find_variant
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
    family, name = find_variant(variant)
    text = explanation(family, family.variants[name])
    print_text(tables.as_json(text.content()) if json else text.text())
    return 0
