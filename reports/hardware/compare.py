"""Comparison of the emulator with a record: each metric of each kernel, its tolerance, and known reasons of differences."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from math import prod
from typing import Any, NamedTuple

from simtbed import Device, SimtbedError, devices
from simtbed.compiled.kernel import executed_binary
from simtbed.compiled.kernel_launches import KernelLaunches
from simtbed.engines.cuda.binary import Binary
from simtbed.engines.cuda.nvcc import Built
from simtbed.machine.occupancy import occupancy
from simtbed.runtime.engine import Resources
from simtbed.sass.operands import UnsupportedInstruction
from simtbed.sass.state import ExecutionError

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
    """A known reason of differences: the compiler's transformation, and the SASS that shows it, or an unknown cause.

    kernels: names or patterns with *.
    """

    kernels: tuple[str, ...]
    figures: tuple[str, ...]
    cause: str
    sass: str

    def __str__(self) -> str:
        return ", ".join(self.kernels)

    def fits(self, kernel: str) -> bool:
        """Return whether the reason applies to a kernel."""
        return any(fnmatchcase(kernel, pattern) for pattern in self.kernels)


@dataclass(frozen=True)
class Cell:
    """One metric of one kernel. Ratios are 0 to 1, occupancy is in percent."""

    kernel: str
    figure: Figure
    emulated: float
    measured: float
    reason: Reason | None = None

    @property
    def within_tolerance(self) -> bool:
        """Whether the difference is within the tolerance of the metric."""
        match self.figure.goal:
            case "equal":
                return abs(self.emulated - self.measured) < 0.005
            case "5 %":
                return abs(self.emulated - self.measured) <= 0.05 * self.measured + 1e-9
            case "2 points":
                return abs(self.emulated - self.measured) <= 0.02 + 1e-9
            case "shown":
                return True


class Executions(NamedTuple):
    """Instructions of a kernel with other executions by warps or by lanes than recorded. beyond_bsync: those of other opcodes."""

    differing: int
    beyond_bsync: int


@dataclass(frozen=True)
class Comparison:
    """A comparison. cells: by kernel. stale: kernels with another text or other launches than in the record.
    unmeasured: kernels without recorded counters. idle: reasons without a difference. refused: kernels with SASS that is
    not emulated, each with the instruction. executions: by kernel."""

    record: Record
    cells: tuple[Cell, ...]
    stale: tuple[str, ...]
    unmeasured: tuple[str, ...]
    idle: tuple[Reason, ...]
    refused: Mapping[str, str]
    executions: Mapping[str, Executions]

    @property
    def unexplained(self) -> tuple[Cell, ...]:
        """Cells beyond their tolerance, without a reason."""
        return tuple(cell for cell in self.cells if not cell.within_tolerance and cell.reason is None)

    @property
    def holds(self) -> bool:
        return not (self.unexplained or self.stale or self.idle)


def compare(record: Record, names: Sequence[str]) -> Comparison:
    """Run the cases on the emulator and compare their kernels with the record."""
    cells: list[Cell] = []
    stale: list[str] = []
    waiting: list[str] = []
    refused: dict[str, str] = {}
    executions: dict[str, Executions] = {}
    device = devices.find(record.device)
    for case in find(names):
        launcher = RecordingLauncher("jit", device)
        case.run(launcher)
        recorded = {profiled.source: profiled for profiled in record.counters.get(case.name, ())}
        kernels = launcher.kernels
        for number, launched in enumerate(kernels, 1):
            name = case.name if len(kernels) == 1 else f"{case.name}, kernel {number}"
            profiled = recorded.get(launched.digest)
            if case.name not in record.counters:
                waiting.append(name)
            elif (
                profiled is None
                or not _same_launches(launched, profiled)
                or (cubin := profiled.compiled(launched)) is None
            ):
                stale.append(name)
            else:
                try:
                    emulated, executions[name] = emulated_figures(launched, profiled, cubin, device)
                except (UnsupportedInstruction, ExecutionError) as error:
                    refused[name] = str(error)
                    continue
                cells += [Cell(name, f, emulated[f.name], profiled.figures[f.name]) for f in FIGURES]
    explained_cells, idle = _explained(cells)
    return Comparison(record, explained_cells, tuple(stale), tuple(waiting), idle, refused, executions)


def _same_launches(launched: KernelLaunches, profiled: Profiled) -> bool:
    """Return whether the first instruction has the recorded numbers of warps and threads."""
    first = profiled.sass[0]
    return (profiled.launches, first.warps, first.threads) == (launched.launches, launched.warps, launched.threads)


def emulated_figures(
    launched: KernelLaunches, profiled: Profiled, cubin: bytes, device: Device
) -> tuple[dict[str, float], Executions]:
    """Return the metrics of the compiled view for a cubin with the recorded SASS, and its executions; branches are the source's.

    Raises UnsupportedInstruction or ExecutionError for SASS that is not emulated.
    """
    totals = launched.counters.totals()
    values: dict[str, float] = {figure.name: totals[figure.counter] for figure in FIGURES if figure.counter}
    resources = Resources(profiled.registers, profiled.shared_bytes, 0, 0, 0, 0)
    kernel = executed_binary(
        launched, Binary(launched.source.interface, Built(cubin, resources, "")), "sm_90", limit=1 << 62
    )
    values |= kernel.memory
    values["warp_instructions"], values["thread_instructions"] = kernel.warp_instructions, kernel.thread_instructions
    values["warp_execution_efficiency"] = kernel.efficiency
    values["registers"] = kernel.registers
    block = prod(launched.request.block)
    values["occupancy"] = occupancy(device, block, profiled.registers, profiled.shared_bytes).percent
    differing = [
        one.instruction.opcode
        for one, recorded in zip(kernel.instructions, profiled.sass, strict=True)
        if (round(one.warps), round(one.threads)) != (recorded.warps, recorded.threads)
    ]
    return values, Executions(len(differing), len(differing) - differing.count("BSYNC"))


def _explained(cells: list[Cell]) -> tuple[tuple[Cell, ...], tuple[Reason, ...]]:
    """Assign reasons to cells beyond their tolerance. Return the cells, and the idle reasons: those without such a cell for one
    of their metrics, where each of their patterns names a compared kernel."""
    used: set[tuple[Reason, str]] = set()

    def explained(cell: Cell) -> Cell:
        name = cell.figure.name
        fitting = (r for r in reasons() if name in r.figures and r.fits(cell.kernel))
        if cell.within_tolerance or (reason := next(fitting, None)) is None:
            return cell
        used.add((reason, name))
        return replace(cell, reason=reason)

    explained_cells = tuple(map(explained, cells))
    compared = {cell.kernel for cell in cells}
    idle: list[Reason] = [
        reason
        for reason in reasons()
        if all(any(fnmatchcase(kernel, pattern) for kernel in compared) for pattern in reason.kernels)
        and any((reason, figure) not in used for figure in reason.figures)
    ]
    return explained_cells, tuple(idle)


@cache
def reasons() -> tuple[Reason, ...]:
    """Return the known reasons. Raises SimtbedError for an unknown metric in the file."""
    names = {figure.name for figure in FIGURES}
    known_reasons = tuple(
        Reason(_patterns(row["kernel"]), tuple(row["figures"]), row["why"], row["sass"].strip("\n"))
        for row in _entries()["reason"]
    )
    for reason in known_reasons:
        if unknown := set(reason.figures) - names:
            raise SimtbedError(f"{REASONS}: {reason}: no figure is called {', '.join(sorted(unknown))}")
    return known_reasons


def _patterns(patterns: str | list[str]) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else tuple(patterns)


@cache
def _entries() -> dict[str, Any]:
    return tomllib.loads(REASONS.read_text(encoding="utf-8")) if REASONS.exists() else {"reason": []}
