"""What the lines that use global memory move, and what they would move if each lane had a row of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from simtbed import Counters
from simtbed.ir.nodes import Program
from simtbed.runtime.prepared import prepare

KINDS = ("global_load", "global_store")


@dataclass(frozen=True)
class Traffic:
    """Global accesses of one kind and size on one source line, summed over the warps.

    size: bytes a lane. sectors: moved. sector: bytes of one.
    """

    file: str
    line: int
    kind: str
    size: int
    requests: int
    sectors: int
    sector: int
    bytes: int

    @property
    def used(self) -> float:
        """Bytes asked for, of those moved. Above 1 where lanes ask for the same bytes."""
        return self.bytes / (self.sectors * self.sector)

    @property
    def apart(self) -> int | None:
        """Sectors moved if each lane's element lay in a row of its own, so that no two lanes share a sector; None
        where lanes share elements, which no layout changes."""
        if self.used > 1:
            return None
        return self.bytes // self.size * -(-self.size // self.sector)


def memory_traffic(counted: Iterable[tuple[Program, Counters]]) -> list[Traffic]:
    """One entry a line, kind and size of access, in source order."""
    found: dict[tuple[str, int, str, int], Traffic] = {}
    for program, counters in counted:
        sizes = {(replace(site.span, calls=()), site.kind): site.size for site in prepare(program).sites}
        for (span, kind), row in counters.rows.items():
            if kind not in KINDS or not row.get(f"{kind}_requests"):
                continue
            key = (span.file, span.line, kind, sizes[span, kind])
            old = found.get(key, Traffic(*key, requests=0, sectors=0, sector=counters.sector, bytes=0))
            found[key] = replace(
                old,
                requests=old.requests + row[f"{kind}_requests"],
                sectors=old.sectors + row[f"{kind}_sectors"],
                bytes=old.bytes + row[f"{kind}_bytes"],
            )
    return [found[key] for key in sorted(found)]
