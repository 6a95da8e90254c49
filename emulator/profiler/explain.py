"""Explanations of the largest avoidable costs in a profile, with the counters that a change of the kernel would save.

The changes of memory accesses are computed by `remedies`; those of control flow from the iterations and the lanes counted here.

Costs are compared in cycles of one SM at its throughput, without other limits: 0.25 for a warp instruction (four
schedulers), 1 for a wavefront of shared memory, 0.5 for a sector (64 bytes per cycle), 1 for each sector of an atomic
operation.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..language.intrinsics import WARP_SIZE
from ..source_text import parsed
from .advice_texts import text
from .costs import Costs, Place
from .counters import Row
from .remedies import Saving
from .samples import Table, iteration, lanes_by_iterations

INSTRUCTION, WAVEFRONT, SECTOR, ATOMIC = 0.25, 1.0, 0.5, 1.0
"""Cycles of an SM."""
MIN_FRACTION = 0.01
"""Minimum fraction of all cycles for an explanation."""
NO_EXPLANATION = f"No avoidable cost is {MIN_FRACTION:.0%} of the cycles or more.".replace("%", " %")
MIN_IDLE = 0.1
"""Minimum fraction of all warp instructions that another assignment of work to lanes saves."""
UNCOUNTED = ("local", "constant")
"""Rules for accesses whose cycles are in no row of counters."""


@dataclass(frozen=True)
class Explanation:
    """The avoidable cost of some places, and its remedy.

    places: the most expensive first. what: its kind. sentence: the cause. remedy: the change. savings: the counters that the
    change decreases, with the predicted decrease over all launches, negative for an increase; empty if it is unknown. cycles:
    of an SM, saved by the remedy. share: fraction of the cycles of the profile. more: the warp instructions that the change adds,
    as a fraction of those of the profile.
    """

    places: tuple[Place, ...]
    what: str
    sentence: str
    remedy: str
    savings: tuple[Saving, ...]
    cycles: float
    share: float
    more: float = 0.0

    @property
    def place(self) -> Place:
        """The most expensive place."""
        return self.places[0]

    @property
    def text(self) -> str:
        """Cause, remedy, and predicted decreases and increases of counters."""
        saved, added = (
            ", ".join(f"{abs(n):,} {counter.replace('_', ' ')}" for counter, n in self.savings if sign * n > 0)
            for sign in (1, -1)
        )
        more = f" ({100 * self.more:.0f} % more)" * (self.more >= MIN_FRACTION)
        return (
            f"{self.sentence} {self.remedy}"
            + f" Saves {saved}." * bool(saved)
            + f" Adds about {added}{more}." * bool(added)
        )

    def __str__(self) -> str:
        return f"{self.place.span.place}: {self.text}"


def cycles(row: Row) -> float:
    """Return the cost of a row of counters, in cycles of an SM at its throughput."""
    sectors = sum(row.get(f"{kind}_sectors", 0) for kind in ("global_load", "global_store"))
    atomics = sum(row.get(f"{kind}_sectors", 0) for kind in ("global_atomic", "global_reduction"))
    wavefronts = sum(row.get(f"{kind}_wavefronts", 0) for kind in ("shared_load", "shared_store", "shared_atomic"))
    return INSTRUCTION * row.get("warp_instructions", 0) + WAVEFRONT * wavefronts + SECTOR * sectors + ATOMIC * atomics


def explanations(profile: Costs) -> list[Explanation]:
    """Return the avoidable costs of at least 1 % of all cycles, the largest first."""
    uncounted = sum(remedy.cycles for (rule, _), remedy in profile.remedies.items() if rule in UNCOUNTED)
    total = sum(cycles(row) for row in profile.rows.values()) + uncounted
    result = [*_of_memory(profile, total), *_of_control(profile, total)]
    largest = [one for one in result if one.share >= MIN_FRACTION]
    return sorted(largest, key=lambda one: (-one.cycles, one.place.span.file, one.place.span.line))


def _of_memory(profile: Costs, total: float) -> Iterator[Explanation]:
    instructions = sum(row.get("warp_instructions", 0) for row in profile.rows.values())
    for (rule, places), remedy in profile.remedies.items():
        what, sentence, change = text(rule, places, remedy.numbers, profile.device)
        more = -dict(remedy.savings).get("warp_instructions", 0) / max(instructions, 1)
        share = remedy.cycles / max(total, 1)
        yield Explanation(places, what, sentence, change, remedy.savings, remedy.cycles, share, more)


def _of_control(profile: Costs, total: float) -> Iterator[Explanation]:
    instructions = sum(row.get("warp_instructions", 0) for row in profile.rows.values())
    for place in profile.rows:
        outer = profile.around.get(place, frozenset())
        if place.kind != "branch" or any(one in profile.loops for one in outer):
            continue
        node = _statements(profile.sources.get(place.span.file, "")).get(_place_position(place))
        rule: tuple[str, str, str, float] | None = None
        if isinstance(node, ast.For) and place in profile.loops:
            rule = _uneven(profile, place, node, profile.loops[place])
        elif isinstance(node, ast.If) and node.orelse:
            rule = _divergent(profile, place, node)
        if rule is not None and rule[3] >= MIN_IDLE * instructions > 0:
            what, sentence, remedy, saved = rule
            savings = (Saving("warp_instructions", round(saved)),)
            yield Explanation(
                (place,), what, sentence, remedy, savings, INSTRUCTION * saved, INSTRUCTION * saved / total
            )


@lru_cache(maxsize=16)
def _statements(source: str) -> dict[tuple[int, int], ast.For | ast.If]:
    """Return the loops and branches of a file by `_position`, without elif; none if the file does not parse."""
    try:
        tree = parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the text of a saved run may be anything
        return {}
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.If)]
    elifs = {elif_ for node in statements if isinstance(node, ast.If) for elif_ in _elifs(node)}
    return {_position(node): node for node in statements if node not in elifs}


def _position(node: ast.For | ast.If) -> tuple[int, int]:
    """Return line and column of the condition or the range, the span of the statement's counters."""
    shown = node.iter if isinstance(node, ast.For) else node.test
    return shown.lineno, shown.col_offset + 1


def _place_position(place: Place) -> tuple[int, int]:
    return place.span.line, place.span.column


# ------------------------------------------------------------------ control
def _uneven(profile: Costs, place: Place, node: ast.For, table: Table) -> tuple[str, str, str, float] | None:
    """Return the saving of equal numbers of iterations in the lanes of a warp, for a loop with one execution per thread.

    Each iteration must cost the same, and the number of iterations must be known before the loop. A step is that of lanes
    which share an item.
    """
    steps = isinstance(node.iter, ast.Call) and len(node.iter.args) > 2
    ends = any(isinstance(inner, ast.Break | ast.Return) for inner in ast.walk(node))
    if steps or ends or _has_barriers(profile):
        return None
    own, inside = profile.rows[place], profile.under.get(place, {})
    if inside.get("divergent_branches", 0):
        return None
    spans = np.diff([iteration(row) for row in range(len(table) + 1)])
    warps = int((table["warps"] * spans).sum())
    fewest = int((-(-table["lanes"] // WARP_SIZE) * spans).sum())
    groups = lanes_by_iterations(table)
    if not warps or len(groups) < 2:
        return None
    saved = (1 - fewest / warps) * (own.get("warp_instructions", 0) + inside.get("warp_instructions", 0))
    few, most = f"{groups[0][0]:,}", _most(groups[-1])
    return (
        "uneven loop",
        f"lanes execute {few} to {most} iterations, and a warp continues until its last lane is done: warps execute {warps:,} "
        f"iterations, {fewest:,} with equal numbers in the lanes of a warp.",
        "Assign the items to threads in the order of their numbers of iterations.",
        saved,
    )


def _most(last: tuple[int, int, int]) -> str:
    low, high, _ = last
    return f"{low:,}" if low == high else f"more than {low - 1:,}"


def _has_barriers(profile: Costs) -> bool:
    return any(row.get("barriers", 0) for row in profile.rows.values())


def _divergent(profile: Costs, place: Place, node: ast.If) -> tuple[str, str, str, float] | None:
    """Return the saving of warps whose lanes take one arm of an if, elif, else."""
    positions = {_position(one) for one in _elifs(node)}
    elifs = [one for one in profile.rows if one.kind == "branch" and _place_position(one) in positions]
    rows = [profile.rows[one] for one in (place, *(one for one in elifs if one.span.file == place.span.file))]
    inside = profile.under.get(place, {})
    nested = inside.get("divergent_branches", 0) - sum(row.get("divergent_branches", 0) for row in rows[1:])
    branches, divergent = rows[0].get("branches", 0), rows[0].get("divergent_branches", 0)
    instructions, threads = inside.get("warp_instructions", 0), inside.get("thread_instructions", 0)
    if nested or divergent < 2 or not instructions:
        return None
    lanes = rows[0].get("thread_instructions", 0) / rows[0]["warp_instructions"]
    return (
        "divergent branch",
        f"in {divergent:,} of {branches:,} executions the lanes of a warp take different arms, and "
        f"{100 * threads / (lanes * instructions):.0f} % of them are active in the arms.",
        "Assign the work to threads so that all lanes of a warp take the same arm.",
        instructions - threads / lanes,
    )


def _elifs(node: ast.If) -> Iterator[ast.If]:
    """Yield the elif branches of an if."""
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        yield node
