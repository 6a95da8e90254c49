"""Lines of instructions that nvcc's line table has wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from .flow import LocatedInstruction
from .opcode_classes import EFFECTS
from .source_statements import Place, SourceStatements

_KINDS = ("shared_atomic", "global_atomic", "global_reduction")
"""What a compiler neither leaves out nor makes one of several."""


def with_fixed_lines(placed: Sequence[LocatedInstruction], source: SourceStatements) -> list[LocatedInstruction]:
    """Instructions with atomic operations at their own lines. nvcc may give several the line of the first one: then some of the source
    have no instruction, and the one before them as many more."""
    found = list(placed)
    for kind in _KINDS:
        holding: dict[Place, list[int]] = defaultdict(list)
        for n, one in enumerate(placed):
            if EFFECTS.get(one.instruction.opcode) == kind:
                holding[one.place].append(n)
        ordered = [one.place for _, one in sorted(source.statements.items()) if one.site.kind == kind and one.lanes]
        while ordered:
            together = 1
            while together < len(ordered) and (ordered[together] == ordered[0] or ordered[together] not in holding):
                together += 1
            own, ordered = ordered[:together], ordered[together:]
            copies = holding.get(own[0], [])
            for copy, n in enumerate(copies if len(copies) % together == 0 else ()):
                line, *calls = own[copy % together]
                found[n] = replace(placed[n], line=line, calls=tuple(calls))
    return found
