"""Global memory traffic by source line, and the traffic of the same accesses with one sector per lane."""

from dataclasses import dataclass, replace

from simtbed import Profile

KINDS = ("global_load", "global_store")


@dataclass(frozen=True)
class Traffic:
    """Global accesses of one kind and size on one source line, summed over the warps.

    size: bytes per lane. sectors: transferred. sector: bytes of a sector. bytes: requested by lanes.
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
    def efficiency(self) -> float:
        """Requested bytes divided by transferred bytes. Above 1 if lanes request the same bytes."""
        return self.bytes / (self.sectors * self.sector)

    @property
    def sectors_if_scattered(self) -> int | None:
        """Sectors transferred if no two lanes shared a sector; None if lanes share elements, independent of the layout."""
        if self.efficiency > 1:
            return None
        return self.bytes // self.size * -(-self.size // self.sector)


def memory_traffic(profile: Profile) -> list[Traffic]:
    """Return one entry per line, kind and size of access, in source order."""
    result: dict[tuple[str, int, str, int], Traffic] = {}
    for place, row in profile.rows.items():
        if place.kind not in KINDS or not row.get(f"{place.kind}_requests"):
            continue
        key = (place.span.file, place.span.line, place.kind, place.size)
        old = result.get(key, Traffic(*key, requests=0, sectors=0, sector=profile.device.sector, bytes=0))
        result[key] = replace(
            old,
            requests=old.requests + row[f"{place.kind}_requests"],
            sectors=old.sectors + row[f"{place.kind}_sectors"],
            bytes=old.bytes + row[f"{place.kind}_bytes"],
        )
    return [result[key] for key in sorted(result)]
