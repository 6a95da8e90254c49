"""Corrections of nvcc's line table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from .flow_records import LocatedInstruction
from .opcode_classes import EFFECTS
from .source_statements import Place, SourceStatements

_KINDS = ("shared_atomic", "global_atomic", "global_reduction")
"""Effects that the compiler neither drops nor merges."""


def with_fixed_lines(placed: Sequence[LocatedInstruction], source: SourceStatements) -> list[LocatedInstruction]:
    """Return instructions with atomics at their own lines. nvcc may assign the line of the first atomic to several."""
    result = list(placed)
    for kind in _KINDS:
        by_place: dict[Place, list[int]] = defaultdict(list)
        for n, located in enumerate(placed):
            if EFFECTS.get(located.instruction.opcode) == kind:
                by_place[located.place].append(n)
        ordered = [
            located.place
            for _, located in sorted(source.statements.items())
            if located.site.kind == kind and located.lanes
        ]
        while ordered:
            run = 1
            while run < len(ordered) and (ordered[run] == ordered[0] or ordered[run] not in by_place):
                run += 1
            places, ordered = ordered[:run], ordered[run:]
            copies = by_place.get(places[0], [])
            for copy, n in enumerate(copies if len(copies) % run == 0 else ()):
                line, *calls = places[copy % run]
                result[n] = replace(placed[n], line=line, calls=tuple(calls))
    return result
