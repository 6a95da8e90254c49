"""Findings in host code: copies beyond allocations, uses after free, double frees, unread errors of launches, host memory in kernels."""

from __future__ import annotations

from collections.abc import Callable

from ...runtime.observing import observers

MAX_FREED = 4096
"""Freed allocations that are remembered."""
MAX_SHOWN = 20
"""Findings that are printed, and remarks."""


class HostFindings:
    """The findings of a program's host code. report: prints a line on stderr. Only checkers ask for them."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.report = report
        self.enabled = any(getattr(observer, "check", None) for observer in observers())
        self.count = 0
        self._shown: set[str] = set()
        self._allocated: dict[int, tuple[int, str]] = {}
        self._freed: dict[int, tuple[int, str]] = {}

    def add(self, place: str, text: str) -> None:
        """Add a finding; print each one once."""
        if not self.enabled:
            return
        self.count += 1
        line = f"simtbed: {place}: {text}"
        if line not in self._shown and len(self._shown) < MAX_SHOWN:
            self._shown.add(line)
            self.report(line)

    def allocated(self, start: int, size: int, place: str) -> None:
        """Note an allocation."""
        self._allocated[start] = size, place
        self._freed.pop(start, None)

    def freed(self, start: int, place: str) -> None:
        """Note the end of an allocation."""
        size, _ = self._allocated.pop(start, (0, ""))
        self._freed[start] = size, place
        if len(self._freed) > MAX_FREED:
            del self._freed[next(iter(self._freed))]

    def explain(
        self, address: int, size: int, allocation: tuple[int, int] | None, after_free: str = "use after free"
    ) -> str:
        """Return the error of a use of memory. allocation: start and size of the allocation with the address."""
        if allocation is not None:
            start, whole = allocation
            place = self._allocated.get(start, (0, ""))[1]
            origin = f", allocated at {place}" if place else ""
            return f"{size:,} bytes at byte {address - start:,} of an allocation of {whole:,} bytes{origin}"
        for start, (whole, place) in self._freed.items():
            if start <= address < start + max(whole, 1):
                return f"{after_free}: byte {address - start:,} of an allocation of {whole:,} bytes, freed at {place}"
        return f"{address:#x} is no memory of the device"

    def finish(self) -> None:
        """Print a remark for each call whose allocations were not freed."""
        sizes: dict[str, list[int]] = {}
        for size, place in self._allocated.values():
            sizes.setdefault(place, []).append(size)
        for place, own in [*sizes.items()][: MAX_SHOWN * self.enabled]:
            count = f" in {len(own):,} allocations" if len(own) > 1 else ""
            self.report(f"simtbed: remark: {place}: {sum(own):,} bytes{count} are not freed")
