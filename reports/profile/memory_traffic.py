"""What the lines that use global memory move, and what they would move if each lane had a row of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from simtbed import Profile

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


def memory_traffic(profile: Profile) -> list[Traffic]:
    """One entry a line, kind and size of access, in source order."""
    found: dict[tuple[str, int, str, int], Traffic] = {}
    for place, row in profile.rows.items():
        if place.kind not in KINDS or not row.get(f"{place.kind}_requests"):
            continue
        key = (place.span.file, place.span.line, place.kind, place.size)
        old = found.get(key, Traffic(*key, requests=0, sectors=0, sector=profile.device.sector, bytes=0))
        found[key] = replace(
            old,
            requests=old.requests + row[f"{place.kind}_requests"],
            sectors=old.sectors + row[f"{place.kind}_sectors"],
            bytes=old.bytes + row[f"{place.kind}_bytes"],
        )
    return [found[key] for key in sorted(found)]
