"""The observer of one test's launches: what it checks them for, and what it found that the test was not told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import Diagnostic, render
from ..machine import device as devices
from ..machine.device import Device
from ..profiler.launch import Launch
from ..profiler.run import gathered
from ..runtime.observing import Call, Proceed
from ..runtime.recording import Recorder, parsed
from ..runtime.registry import EngineName, row_of
from ..runtime.result import Result
from .known import Pin, as_pin


@dataclass
class Watch:
    """check, seeds, device: as in `Recorder`. required: whether a launch on a GPU, where nothing is checked, is refused.
    launches: those made. missed: faults that no launch of the test told it of."""

    check: frozenset[str] = frozenset()
    seeds: tuple[int, ...] = ()
    required: bool = False
    device: Device | None = None
    engine: EngineName | None = None
    launches: list[Launch] = field(default_factory=list)
    missed: list[Diagnostic] = field(default_factory=list)

    def observe(self, call: Call, proceed: Proceed) -> Result:
        checked = self.required or row_of(call.engine).emulates
        made: list[Launch] = []
        check, seeds = (self.check, self.seeds) if checked else (frozenset(), ())
        result = Recorder(made.append, check=check, seeds=seeds, counters=False).observe(call, proceed)
        told = {(fault.kind, fault.span) for fault in result.faults}
        self.missed += [fault for one in made for fault in one.faults if (fault.kind, fault.span) not in told]
        self.launches += made
        return result

    def judged(self, pins: Sequence[Pin], root: Path) -> tuple[str, set[int]]:
        """What was missed and is not known, as a text that is empty where there is nothing; the numbers of pins used."""
        used, unknown = set(), []
        for fault in gathered(self.missed):
            covering = [number for number, pin in enumerate(pins) if pin.covers(fault, root)]
            used.update(covering)
            if not covering:
                unknown.append(f"{render(fault)}\n{as_pin(fault, root)}\nreason = pins it in .simtbed/known.toml")
        return "\n\n".join(unknown), used


def watch(check: str, schedules: int, required: bool, device: str | Device | None) -> Watch:
    """The watch for a test, of what its marker and the command line say."""
    row = devices.find(device) if isinstance(device, str) else device
    return Watch(parsed(check), tuple(range(1, schedules + 1)), required, row)


def described(launch: Launch) -> str:
    """A launch in one line."""
    counted = "" if launch.counts is None else f", {launch.profile.totals()['warp_instructions']} warp instructions"
    return f"{launch.kernel.name} on {launch.engine}, grid {launch.grid}, block {launch.block}{counted}"
