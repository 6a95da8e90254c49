"""Observer of one test's launches: their findings, and those not reported to the test."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import Diagnostic, SimtbedError, render
from ..machine import device as devices
from ..machine.device import Device
from ..profiler.launch import Launch
from ..profiler.run import Run, merge_findings
from ..runtime.observer_folder import LaunchWriter, ObserverFolder
from ..runtime.observing import OBSERVER, NextLaunch, PendingLaunch
from ..runtime.recording import Recorder, parsed
from ..runtime.registry import EngineName, row_of
from ..runtime.result import FaultError, LaunchDetails
from ..span import GENERATED
from .answers import answer
from .compiling import Compiling
from .known_findings import Pin, as_pin

Record = tuple[list[Launch], list[Diagnostic], list[tuple[str, str]]]
"""A launch of a child process as recorded, its faults not reported to the test, and its answers: engines and lines."""


@dataclass
class Watch:
    """Observer of the launches of a run of pytest.

    check, seeds, device: as in `Recorder`. required: whether to reject a launch on a GPU, where nothing is checked.
    compiling: kernels to compile too. detail: whether to count launches, for a report.
    answering: whether to record results. process: the process whose launches are recorded here; child processes write
    theirs to an observer folder. missed: faults not reported to the test by a launch. raised_faults: faults that
    launches of this process raised or returned. answers: by engine. running: unfinished launches.
    """

    check: frozenset[str] = frozenset()
    seeds: tuple[int, ...] = ()
    required: bool = False
    device: Device | None = None
    compiling: Compiling | None = None
    detail: bool = False
    answering: bool = False
    process: int = field(default_factory=os.getpid)
    folder: str = ""
    writer: LaunchWriter | None = None
    engine: EngineName | None = None
    launches: list[Launch] = field(default_factory=list)
    missed: list[Diagnostic] = field(default_factory=list)
    raised_faults: list[Diagnostic] = field(default_factory=list)
    answers: dict[str, list[str]] = field(default_factory=dict)
    running: set[int] = field(default_factory=set)

    def observe(self, call: PendingLaunch, proceed: NextLaunch) -> LaunchDetails:
        self.running.add(id(call))
        try:
            return self._observe(call, proceed)
        finally:
            self.running.discard(id(call))

    def _observe(self, call: PendingLaunch, proceed: NextLaunch) -> LaunchDetails:
        checked = self.required or row_of(call.engine).complete
        recorded: list[Launch] = []
        check, seeds = (self.check, self.seeds) if checked else (frozenset(), ())
        recorder = Recorder(recorded.append, check=check, seeds=seeds, counters=self.detail, detail=self.detail)
        result = recorder.observe(call, proceed)
        self.raised_faults += result.faults
        reported = {(fault.kind, fault.span) for fault in result.faults}
        missed = [fault for one in recorded for fault in one.faults if (fault.kind, fault.span) not in reported]
        if self.compiling is not None:
            missed += self.compiling.findings([call.request])
        answers: list[tuple[str, str]] = [(call.engine, answer(result))] if self.answering else []
        if os.getpid() == self.process:
            self._add(recorded, missed, answers)
        elif self.folder:
            self._record((recorded, missed, answers))
        return result

    def _record(self, record: Record) -> None:
        """Write a record of a child process; nothing if the run of pytest has ended."""
        with suppress(FileNotFoundError):
            self.writer = self.writer or LaunchWriter(self.folder)
            self.writer.add(record)

    def _add(self, recorded: list[Launch], missed: list[Diagnostic], answers: Sequence[tuple[str, str]]) -> None:
        self.launches += recorded
        self.missed += missed
        for engine, line in answers:
            self.answers.setdefault(engine, []).append(line)

    @contextmanager
    def elsewhere(self, folder: Callable[[], ObserverFolder]) -> Iterator[None]:
        """Observe the launches of child processes too, if there is anything to observe. folder: outlives the processes."""
        looking = self.check or self.seeds or self.compiling or self.detail or self.answering
        if not looking or os.environ.get(OBSERVER):
            yield
            return
        try:
            records = folder()
            self.folder = str(records.path)
            records.write_observer("tests", self._options())
        except OSError as error:
            self._miss(f"launches of other processes cannot be observed: {error.strerror}")
            yield
            return
        os.environ[OBSERVER] = self.folder
        try:
            yield
        finally:
            os.environ.pop(OBSERVER, None)
            try:
                for recorded, missed, answers in records.values(Record):
                    self._add(recorded, missed, answers)
            except SimtbedError as error:
                self._miss(str(error))

    def _miss(self, message: str) -> None:
        self.missed.append(Diagnostic("launch", message, GENERATED))

    def _options(self) -> dict[str, Any]:
        """Return the options of `observer_of` for the same watch in another process."""
        same = ("check", "seeds", "required", "device", "detail", "answering", "process")
        archs = self.compiling.architectures if self.compiling else ()
        return {"archs": tuple(archs), "fields": {name: getattr(self, name) for name in same}}

    def end(self) -> None:
        """Add a finding for unfinished launches."""
        if self.running:
            many = f"{len(self.running)} launch{'' if len(self.running) == 1 else 'es'}"
            self._miss(f"{many} had not ended when the test did")

    def raised(self, error: SimtbedError) -> list[Diagnostic]:
        """Return the findings of an error, without the missed ones."""
        findings = error.details.faults if isinstance(error, FaultError) else getattr(error, "diagnostics", [])
        missed_keys = {(fault.kind, fault.span) for fault in self.missed}
        return [fault for fault in findings if (fault.kind, fault.span) not in missed_keys]

    def run(self, unknown: Sequence[Diagnostic]) -> str:
        """Return the launches as in `Run.json`, with the findings that fail the test; empty without launches."""
        if not self.launches:
            return ""
        first, *rest = (replace(one, faults=(), remarks=()) for one in self.launches)
        return Run([replace(first, faults=tuple(unknown)), *rest]).json()


def observer_of(folder: str, archs: tuple[str, ...], fields: Mapping[str, Any]) -> Watch:
    """Return the watch of a child process of a test, from the options in an observer folder."""
    return Watch(compiling=Compiling(archs) if archs else None, folder=folder, **fields)


def without_known(findings: Sequence[Diagnostic], pins: Sequence[Pin], root: Path) -> tuple[list[Diagnostic], set[int]]:
    """Return the findings without known ones, one per place, and the numbers of the pins used."""
    used, unknown = set(), []
    for fault in merge_findings(findings):
        covering = [number for number, pin in enumerate(pins) if pin.covers(fault, root)]
        used.update(covering)
        if not covering:
            unknown.append(fault)
    return unknown, used


def findings_text(unknown: Sequence[Diagnostic], root: Path) -> str:
    """Return the findings as a text, each with the lines that pin it."""
    return "\n\n".join(
        f"{render(fault)}\n# to accept it, in .simtbed/known.toml with a reason:\n{as_pin(fault, root)}"
        for fault in unknown
    )


def watch(check: str, schedules: int, required: bool, device: str | Device | None, **more: Any) -> Watch:
    """Return the watch of a test, from its marker and the command line. more: fields of a watch."""
    row = devices.find(device) if isinstance(device, str) else device
    return Watch(parsed(check), tuple(range(1, schedules + 1)), required, row, **more)


def described(launch: Launch) -> str:
    """Return a launch in one line."""
    counted = "" if launch.counts is None else f", {launch.profile.totals()['warp_instructions']} warp instructions"
    return f"{launch.kernel.name} on {launch.engine}, grid {launch.grid}, block {launch.block}{counted}"
