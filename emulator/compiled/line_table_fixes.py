"""Corrections of nvcc's line table."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from .instruction_counts import LocatedInstruction, Place
from .opcode_classes import EFFECTS

_KINDS = ("shared_atomic", "global_atomic", "global_reduction")
"""Effects that the compiler neither drops nor merges."""


def with_fixed_lines(
    placed: Sequence[LocatedInstruction], executed: Sequence[tuple[Place, str]]
) -> list[LocatedInstruction]:
    """Return instructions with atomics at their own lines. nvcc may assign the line of the first atomic to several.

    executed: location and kind of the source's executed statements, in order.
    """
    result = list(placed)
    for kind in _KINDS:
        by_place: dict[Place, list[int]] = defaultdict(list)
        for n, located in enumerate(placed):
            if EFFECTS.get(located.instruction.opcode) == kind:
                by_place[located.place].append(n)
        ordered = [place for place, effect in executed if effect == kind]
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
