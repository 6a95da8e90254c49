"""Changes of a kernel's memory accesses, with the predicted decrease of counters, and their sums over launches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

NUMBERS: Mapping[str, int] = {
    "stride": 7, "alignment": 3, "table": 4, "order": 3, "scattered": 4, "contended": 3, "padding": 2, "local": 3, "constant": 2,
    "conflicts": 1,
}  # fmt: skip
"""The rules, and how many numbers each has for its sentence."""
PARAMETERISED = ("alignment", "padding")
"""Rules whose first number is a parameter of the changed kernel."""


class Saving(NamedTuple):
    """A counter, and its predicted decrease; negative for an increase."""

    counter: str
    saved: int


@dataclass(frozen=True)
class Remedy:
    """A change of some accesses.

    rule: its kind, of NUMBERS. sites: of the accesses, the most expensive first. savings: for each changed counter; empty if
    the effect is unknown. cycles: of an SM, avoidable. numbers: of the sentence that `advice_texts` writes.
    """

    rule: str
    sites: tuple[int, ...]
    savings: tuple[Saving, ...]
    cycles: int
    numbers: tuple[int, ...]


def merge_remedies(several: Sequence[Sequence[Remedy]]) -> tuple[Remedy, ...]:
    """Merge the remedies of launches of one kernel. A parameter of the changed kernel must be the same for all launches."""
    groups: dict[tuple[str, tuple[int, ...]], list[Remedy]] = {}
    for own in several:
        for remedy in own:
            groups.setdefault((remedy.rule, tuple(sorted(remedy.sites))), []).append(remedy)
    return tuple(
        sum_remedies(group)
        for (rule, _), group in groups.items()
        if rule not in PARAMETERISED or (len(group) == len(several) and len({one.numbers[0] for one in group}) == 1)
    )


def sum_remedies(group: Sequence[Remedy]) -> Remedy:
    """Return one remedy for all. The sum has a prediction if each of them has one."""
    largest = max(group, key=lambda one: one.cycles)
    saved: dict[str, int] = {}
    for remedy in group:
        for counter, count in remedy.savings:
            saved[counter] = saved.get(counter, 0) + count
    savings = tuple(Saving(*item) for item in saved.items()) if all(one.savings for one in group) else ()
    return Remedy(largest.rule, largest.sites, savings, sum(one.cycles for one in group), largest.numbers)
