"""The emulator beside a record: every figure of every kernel, whether it is as near as it shall be, and if not, why."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from math import prod
from typing import Any

from simtbed import Device, SimtbedError, devices
from simtbed.compiled.kernel import counted
from simtbed.compiled.kernel_launches import KernelLaunches
from simtbed.machine.occupancy import occupancy

from .cases import find
from .figures import FIGURES, Figure
from .profiled import Profiled
from .record import RECORDS, Record
from .recording import RecordingLauncher

REASONS = RECORDS / "reasons.toml"
"""Known reasons of differences, in a checkout."""
AGAIN = "record it again on the GPU: simtbed record"


@dataclass(frozen=True)
class Reason:
    """Why figures of kernels differ: what the compiler did, and the SASS that shows it; or that nobody knows yet.

    kernels: names, or patterns with * for several.
    """

    kernels: tuple[str, ...]
    figures: tuple[str, ...]
    why: str
    sass: str

    def __str__(self) -> str:
        return ", ".join(self.kernels)

    def fits(self, kernel: str) -> bool:
        """Whether it speaks of a kernel."""
        return any(fnmatchcase(kernel, pattern) for pattern in self.kernels)


@dataclass(frozen=True)
class Cell:
    """One figure of one kernel. ratios are parts of one, occupancy is per cent."""

    kernel: str
    figure: Figure
    emulated: float
    measured: float
    reason: Reason | None = None

    @property
    def meets(self) -> bool:
        """Whether the figure is as near as its goal asks."""
        match self.figure.goal:
            case "equal":
                return abs(self.emulated - self.measured) < 0.005
            case "5 %":
                return abs(self.emulated - self.measured) <= 0.05 * self.measured + 1e-9
            case "2 points":
                return abs(self.emulated - self.measured) <= 0.02 + 1e-9
            case "shown":
                return True


@dataclass(frozen=True)
class Comparison:
    """cells: kernel by kernel. stale: kernels that the record does not hold as they are printed and launched now.
    unmeasured: those of which nothing was counted yet. idle: reasons that explain nothing any more."""

    record: Record
    cells: tuple[Cell, ...]
    stale: tuple[str, ...]
    unmeasured: tuple[str, ...]
    idle: tuple[Reason, ...]

    @property
    def unexplained(self) -> tuple[Cell, ...]:
        """Cells that fall short and have no reason."""
        return tuple(cell for cell in self.cells if not cell.meets and cell.reason is None)

    @property
    def holds(self) -> bool:
        return not (self.unexplained or self.stale or self.idle)


def compare(record: Record, names: Sequence[str]) -> Comparison:
    """Run the cases on the emulator and set them beside the record."""
    cells: list[Cell] = []
    stale: list[str] = []
    waiting: list[str] = []
    device = devices.find(record.device)
    for case in find(names):
        launcher = RecordingLauncher("jit", device)
        case.run(launcher)
        known = {profiled.source: profiled for profiled in record.counters.get(case.name, ())}
        kernels = launcher.kernels
        for number, launched in enumerate(kernels, 1):
            name = case.name if len(kernels) == 1 else f"{case.name}, kernel {number}"
            profiled = known.get(launched.digest)
            if case.name not in record.counters:
                waiting.append(name)
            elif profiled is None or not _same_launches(launched, profiled):
                stale.append(name)
            else:
                emulated = _emulated(launched, profiled, device)
                cells += [Cell(name, f, emulated[f.name], profiled.figures[f.name]) for f in FIGURES]
    return _explained(record, cells, stale, waiting)


def _same_launches(launched: KernelLaunches, profiled: Profiled) -> bool:
    """Whether as many threads entered the kernel as when it was recorded, by its first instruction."""
    first = profiled.sass[0]
    return (profiled.launches, first.warps, first.threads) == (launched.launches, launched.warps, launched.threads)


def _emulated(launched: KernelLaunches, profiled: Profiled, device: Device) -> dict[str, float]:
    """Every figure of the compiled view, counted from the SASS that ran; of local memory, the source's."""
    totals = launched.counters.totals()
    found: dict[str, float] = {figure.name: totals[figure.counter] for figure in FIGURES if figure.counter}
    instructions, memory = counted(launched, [ran.placed for ran in profiled.sass])
    found |= memory.figures
    warps, threads = (
        round(sum(each)) for each in zip(*((one.warps, one.threads) for one in instructions), strict=True)
    )
    found["warp_instructions"], found["thread_instructions"] = warps, threads
    found["warp_execution_efficiency"] = threads / (32 * warps)
    found["registers"] = max(profiled.registers, device.register_least)
    block = prod(launched.request.block)
    found["occupancy"] = occupancy(device, block, profiled.registers, profiled.shared_bytes).percent
    return found


def _explained(record: Record, cells: list[Cell], stale: list[str], waiting: list[str]) -> Comparison:
    """With reasons put to cells that fall short; those that stand for kernels compared but explain none are idle."""
    used: set[tuple[Reason, str]] = set()

    def explained(cell: Cell) -> Cell:
        name = cell.figure.name
        fitting = (r for r in reasons() if name in r.figures and r.fits(cell.kernel))
        if cell.meets or (reason := next(fitting, None)) is None:
            return cell
        used.add((reason, name))
        return replace(cell, reason=reason)

    found = tuple(map(explained, cells))
    compared = {cell.kernel for cell in cells}
    idle: list[Reason] = [
        reason
        for reason in reasons()
        if any(map(reason.fits, compared)) and any((reason, figure) not in used for figure in reason.figures)
    ]
    return Comparison(record, found, tuple(stale), tuple(waiting), tuple(idle))


@cache
def reasons() -> tuple[Reason, ...]:
    """What is known of the compiler's doings. Raises SimtbedError where the file is not right."""
    names = {figure.name for figure in FIGURES}
    found = tuple(
        Reason(_patterns(row["kernel"]), tuple(row["figures"]), row["why"], row["sass"].strip("\n"))
        for row in _entries()["reason"]
    )
    for reason in found:
        if unknown := set(reason.figures) - names:
            raise SimtbedError(f"{REASONS}: {reason}: no figure is called {', '.join(sorted(unknown))}")
    return found


def _patterns(found: str | list[str]) -> tuple[str, ...]:
    return (found,) if isinstance(found, str) else tuple(found)


@cache
def _entries() -> dict[str, Any]:
    return tomllib.loads(REASONS.read_text(encoding="utf-8")) if REASONS.exists() else {"reason": []}
