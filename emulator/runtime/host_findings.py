"""Findings in host code: copies beyond allocations, uses after free, double frees, unread errors of launches, host memory in kernels,
copies of memory that nothing has written."""

import os
import re
import sys
from functools import cache

from ..errors import UNFREED, Diagnostic
from ..source_text import line as source_line
from ..span import Span
from .engine import user_place
from .observer_folder import LaunchWriter, read_observer
from .observing import LAUNCHES, OBSERVER, is_checked
from .unwritten import KIND as UNWRITTEN
from .written_bytes import WrittenBytes

Place = tuple[str, int, str]
"""File, line and function of a call."""
MAX_FREED = 4096
"""Freed allocations that are remembered."""
MAX_FINDINGS = 1000
"""Findings that are recorded, and remarks."""
_LAUNCHED, _OF_LIBRARY = r"\b\w+(?:<[^<>]*>)?(?=\s*<<<)", r"\bcu[a-z]*[A-Z]\w*"
"""The name of a kernel before its launch, and that of a function of the driver or a library."""
_LIBRARIES = "numba.", "numba_cuda.", "numba_cuda_mlir.", "torch."
"""Packages whose functions copy for the user, as prefixes of their modules."""


class HostFindings:
    """The findings of a program's host code, recorded for the observing process. Only checkers record them."""

    def __init__(self) -> None:
        folder = os.environ.get(OBSERVER, "") if is_checked() else ""
        accepted = folder and read_observer(folder)[0] == LAUNCHES  # the observer of tests accepts launches alone
        self.writer = LaunchWriter(folder) if accepted else None
        self._recorded: set[tuple[Place, str]] = set()
        self._allocated: dict[int, tuple[int, Place]] = {}
        self._freed: dict[int, tuple[int, Place]] = {}

    def add(self, kind: str, place: Place, message: str, related: Place | None = None) -> None:
        """Record a finding, each one once. kind: of its diagnostic. related: the call that allocated or freed the memory."""
        key = place, message
        if self.writer is None or key in self._recorded or len(self._recorded) >= MAX_FINDINGS:
            return
        self._recorded.add(key)
        self.record(Diagnostic(kind, message, span_of(place), related=related and span_of(related)))

    def add_unwritten(
        self, place: Place, missing: int, size: int, access: str = "a copy", related: Place | None = None
    ) -> None:
        """Record a remark on an access of the host to `size` bytes, of which nothing has written `missing`. related: as in `add`."""
        self.add(UNWRITTEN, place, f"{access}: {missing:,} of {size:,} bytes were never written", related)

    @property
    def are_recorded(self) -> bool:
        """Whether a checker observes the program."""
        return self.writer is not None

    def record(self, finding: Diagnostic) -> None:
        """Record a finding."""
        if self.writer is not None:
            self.writer.add(finding)

    def allocated(self, start: int, size: int, place: Place) -> None:
        """Note an allocation."""
        self._allocated[start] = size, place
        self._freed.pop(start, None)

    def freed(self, start: int, place: Place) -> None:
        """Note the end of an allocation."""
        if start not in self._allocated:
            return
        size, _ = self._allocated.pop(start)
        self._freed[start] = size, place
        if len(self._freed) > MAX_FREED:
            del self._freed[next(iter(self._freed))]

    def explain(
        self, address: int, size: int, allocation: tuple[int, int] | None, after_free: str = "use after free"
    ) -> tuple[str, Place | None]:
        """Return the error of a use of memory, and the call that allocated or freed it. allocation: start and size of the
        allocation with the address."""
        if allocation is not None:
            start, whole = allocation
            place = self._allocated.get(start, (0, None))[1]
            origin = f", allocated at {place[0]}:{place[1]}" if place else ""
            return f"{size:,} bytes at byte {address - start:,} of an allocation of {whole:,} bytes{origin}", place
        for start, (whole, place) in self._freed.items():
            if start <= address < start + max(whole, 1):
                text = f"byte {address - start:,} of an allocation of {whole:,} bytes, freed at {place[0]}:{place[1]}"
                return f"{after_free}: {text}", place
        return "the address is no memory of the device", None

    def finish(self) -> None:
        """Record a remark for each call whose allocations were not freed."""
        sizes: dict[Place, list[int]] = {}
        for size, place in self._allocated.values():
            sizes.setdefault(place, []).append(size)
        for place, own in sizes.items():
            count = f" in {len(own):,} allocations" if len(own) > 1 else ""
            self.add(UNFREED, place, f"{sum(own):,} bytes{count} are not freed")


@cache
def of_process() -> HostFindings:
    """Return the findings of the host code of this process."""
    return HostFindings()


def note_read(written: WrittenBytes, address: int, size: int, function: str, access: str = "a copy") -> None:
    """Record a remark if the host reads bytes that nothing has written. function: its name in the user's code. access: as in
    `HostFindings.add_unwritten`."""
    findings = of_process()
    if findings.are_recorded and (missing := written.unwritten(address, size)):
        findings.add_unwritten((*user_place(sys._getframe(1), _LIBRARIES), function), missing, size, access)


def span_of(place: Place) -> Span:
    """Return the name of a function in the line that calls it; the first word of a line without the name."""
    file, line, function = place
    text = source_line(file, line)
    names = (rf"\b{re.escape(function)}\b", _LAUNCHED, _OF_LIBRARY, r"\S+")
    match = next(filter(None, (re.search(name, text) for name in names)), None)
    start, end = match.span() if match else (0, 1)
    return Span(file, line, start + 1, line, end + 1)
