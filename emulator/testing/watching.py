"""The observer of one test's launches: what is looked for in them, and what of that the test was not told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import Diagnostic, SimtbedError, render
from ..machine import device as devices
from ..machine.device import Device
from ..profiler.launch import Launch
from ..profiler.run import Run, gathered
from ..runtime.observing import Call, Proceed
from ..runtime.recording import Recorder, parsed
from ..runtime.registry import EngineName, row_of
from ..runtime.result import FaultError, Result
from .answers import answer
from .compiling import Compiling
from .known import Pin, as_pin


@dataclass
class Watch:
    """check, seeds, device: as in `Recorder`. required: whether a launch on a GPU, where nothing is checked, is refused.
    compiling: which kernels are given to the compiler too. detail: whether launches are counted, for a report.
    answering: whether what they answer is kept. launches: those made. missed: faults that no launch of the test told it of.
    answers: by engine."""

    check: frozenset[str] = frozenset()
    seeds: tuple[int, ...] = ()
    required: bool = False
    device: Device | None = None
    compiling: Compiling | None = None
    detail: bool = False
    answering: bool = False
    engine: EngineName | None = None
    launches: list[Launch] = field(default_factory=list)
    missed: list[Diagnostic] = field(default_factory=list)
    answers: dict[str, list[str]] = field(default_factory=dict)

    def observe(self, call: Call, proceed: Proceed) -> Result:
        checked = self.required or row_of(call.engine).emulates
        made: list[Launch] = []
        check, seeds = (self.check, self.seeds) if checked else (frozenset(), ())
        recorder = Recorder(made.append, check=check, seeds=seeds, counters=self.detail, detail=self.detail)
        result = recorder.observe(call, proceed)
        told = {(fault.kind, fault.span) for fault in result.faults}
        self.missed += [fault for one in made for fault in one.faults if (fault.kind, fault.span) not in told]
        if self.compiling is not None:
            self.missed += self.compiling.findings([call.request])
        if self.answering:
            self.answers.setdefault(call.engine, []).append(answer(result))
        self.launches += made
        return result

    def judged(self, pins: Sequence[Pin], root: Path) -> tuple[list[Diagnostic], set[int]]:
        """What was missed and is not known; the numbers of pins used."""
        used, unknown = set(), []
        for fault in gathered(self.missed):
            covering = [number for number, pin in enumerate(pins) if pin.covers(fault, root)]
            used.update(covering)
            if not covering:
                unknown.append(fault)
        return unknown, used

    def raised(self, error: SimtbedError) -> list[Diagnostic]:
        """The findings that an error is made of, without what was missed."""
        found = error.result.faults if isinstance(error, FaultError) else getattr(error, "diagnostics", [])
        known = {(fault.kind, fault.span) for fault in self.missed}
        return [fault for fault in found if (fault.kind, fault.span) not in known]

    def run(self, unknown: Sequence[Diagnostic]) -> str:
        """The launches as `Run.json` has them; what is found is what the test failed for. Empty where there are none."""
        if not self.launches:
            return ""
        first, *others = (replace(one, faults=(), remarks=()) for one in self.launches)
        return Run([replace(first, faults=tuple(unknown)), *others]).json()


def told(unknown: Sequence[Diagnostic], root: Path) -> str:
    """Findings, each with the lines that would pin it; empty where there are none."""
    return "\n\n".join(
        f"{render(fault)}\n{as_pin(fault, root)}\nreason = pins it in .simtbed/known.toml" for fault in unknown
    )


def watch(check: str, schedules: int, required: bool, device: str | Device | None, **more: Any) -> Watch:
    """The watch for a test, of what its marker and the command line say. more: fields of a watch."""
    row = devices.find(device) if isinstance(device, str) else device
    return Watch(parsed(check), tuple(range(1, schedules + 1)), required, row, **more)


def described(launch: Launch) -> str:
    """A launch in one line."""
    counted = "" if launch.counts is None else f", {launch.profile.totals()['warp_instructions']} warp instructions"
    return f"{launch.kernel.name} on {launch.engine}, grid {launch.grid}, block {launch.block}{counted}"
