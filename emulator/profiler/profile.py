"""Profile of launches: counters by place, explanations, and an HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..machine.device import Device
from ..span import Span
from .costs import Costs, Place, add, merge_by_key
from .counters import Row
from .events import Counts, by_site
from .explain import Explanation, explanations
from .line_table import line_table, title
from .samples import Samples, Table, merge_tables
from .sums import INSTRUCTIONS


class Site(NamedTuple):
    """A row of a launch's counts: its place, the instructions of one execution by issue class, and the row of the
    innermost if, while or for around it."""

    place: Place
    costs: Mapping[str, int]
    parent: int | None


@dataclass(frozen=True, eq=False)
class CountedKernel:
    """A kernel with the sites of its counts, specialised for its constants.

    span: of its definition. sites: one for each row of the counts. sources: the text of each file with sites, by the
    file's name in spans.
    """

    name: str
    span: Span
    sites: tuple[Site, ...]
    sources: Mapping[str, str]

    def profile(self, counts: Counts, device: Device, launches: int = 1, samples: Samples | None = None) -> Profile:
        """Return the profile of int64[site, column] counts and samples, which may be sums over several launches."""
        rows: dict[Place, Row] = {}
        under: dict[Place, Row] = {}
        enclosing: dict[Place, frozenset[Place]] = {}
        for site, count in zip(self.sites, counts, strict=True):
            row: Row = {}
            for name, n in by_site(site.place.kind, site.place.size, dict(site.costs), count):
                row[name] = row.get(name, 0) + n
            add(rows.setdefault(site.place, {}), row)
            around = self._around(site)
            enclosing[site.place] = enclosing.get(site.place, frozenset()) | around
            for outer in around:
                add(under.setdefault(outer, {}), row)
        accesses, loops = (
            self._by_place(samples.accesses if samples else {}),
            self._by_place(samples.loops if samples else {}),
        )
        remedies = merge_by_key(
            ((remedy.rule, tuple(dict.fromkeys(self.sites[site].place for site in remedy.sites))), remedy)
            for remedy in (samples.remedies if samples else ())
        )
        return Profile((self.name,), launches, device, rows, self.sources, under, enclosing, accesses, loops, remedies)

    def _around(self, site: Site) -> frozenset[Place]:
        """Return the places of the ifs, whiles and fors around a site."""
        places = set()
        while site.parent is not None:
            site = self.sites[site.parent]
            places.add(site.place)
        return frozenset(places)

    def _by_place(self, tables: Mapping[int, Table]) -> dict[Place, Table]:
        groups: dict[Place, list[Table]] = {}
        for number, table in tables.items():
            groups.setdefault(self.sites[number].place, []).append(table)
        return {place: merge_tables(group) for place, group in groups.items()}


@dataclass(frozen=True, repr=False)
class Profile(Costs):
    """The profile of the launches of one kernel, or of several, on a device. Its text is the table of its lines."""

    def __repr__(self) -> str:
        return f"<Profile of {title(self)}; warp instructions {INSTRUCTIONS(self.totals()):,}>"

    def __str__(self) -> str:
        return f"{title(self)}\n{line_table(self)}"

    def explanations(self) -> list[Explanation]:
        """Return the avoidable costs of at least 1 % of all cycles, the largest first; empty without detail."""
        return explanations(self)

    def html(self) -> str:
        """Return a self-contained HTML page of the profile, without launches."""
        from .html.page import page  # late: it needs a template engine

        name = ", ".join(self.kernels)
        return page(name, {name: self})

    def _repr_html_(self) -> str:
        from .html.page import frame

        return frame(self.html())


def sum_profiles(profiles: Iterable[Profile]) -> Profile:
    """Return the sum of profiles of one device, at least one."""
    first, *rest = profiles
    return sum(rest, first)
