"""Vote of effects and operation classes for the iterations in each block of a compiled loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from .source_statements import Place

Key = tuple[Place, str]
"""A source location, and a kind of effect or operation class."""
BlockCopies = tuple[int, tuple[int, ...]]
"""Unconditional iterations of a block, and those by predicate."""


def most_agreed(
    copies_by_key: dict[Key, dict[int, BlockCopies]], direct: Collection[Key], chosen: Counter[Key], step: int
) -> dict[int, BlockCopies]:
    """Return iterations by block of the key with the most agreed total.

    direct: keys not in arms. chosen: keys of other scopes, preferred. step: iterations by the loop counter, a vote of
    its own; -1 if unknown, 0 if some trips skip these blocks.
    """

    def total(key: Key) -> int:
        return sum(sure + sum(predicated) for sure, predicated in copies_by_key[key].values())

    votes = Counter(map(total, copies_by_key))
    best = max(votes, key=lambda n: (votes[n] + (n == step), n == step, n))
    agreed = [key for key in copies_by_key if not step or total(key) == best]
    agreed = [key for key in agreed if key in direct] or agreed
    key = max(agreed, key=lambda key: (chosen[key], total(key), -min(copies_by_key[key])))
    chosen[key] += 1
    return copies_by_key[key]
