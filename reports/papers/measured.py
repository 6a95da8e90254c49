"""Measured times of the work of a paper: machines, checks of answers, measurement, records and their files."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from simtbed import SimtbedError
from simtbed.documents import json_of, require
from simtbed.escaping import printable
from simtbed.kernels import Agreement, Family, InputError
from simtbed.kernels.files import contents
from simtbed.runtime.cores import current_cores

from ..launchers import Runner, why_unavailable
from .claims import Origin, Source

FOLDER = Path(__file__).parent / "records"


class Machine(StrEnum):
    """Machines: a GPU for kernels, one core or all cores of a CPU for compiled loops."""

    gpu = "GPU"
    core = "one core"
    cores = "all cores"


@dataclass(frozen=True)
class Timing:
    """A measured time. milliseconds: median. work: in the unit of the paper. machine: name, with the number of cores. dated: ISO
    date. on: kind of the machine."""

    milliseconds: float
    work: float
    machine: str
    dated: str
    on: Machine

    @property
    def rate(self) -> float:
        """Units of work per second."""
        return 1e3 * self.work / self.milliseconds

    @property
    def origin(self) -> Origin:
        """The machine and date, for comparisons."""
        return Origin(Source.gpu if self.on is Machine.gpu else Source.cpu, self.machine, self.dated)


@dataclass(frozen=True)
class Check:
    """Check of the answers of timed work. Checks with the same name are run once."""

    name: str
    run: Callable[[], Agreement]


@dataclass(frozen=True)
class Benchmark:
    """Work to time after its check. run: maps the number of runs to the milliseconds of each run and the work of one."""

    name: str
    machine: Machine
    run: Callable[[int], tuple[list[float], float]]
    check: Check


@dataclass(frozen=True)
class Record:
    """Measured times of a paper. timings: by machine and name."""

    paper: str
    timings: Mapping[str, Mapping[str, Timing]]


@dataclass(frozen=True)
class Measured:
    """The timings of one paper from all records, by kind of machine, name and machine; empty without a record."""

    timings: Mapping[tuple[Machine, str], Mapping[str, Timing]] = field(default_factory=dict)

    def timing(self, name: str, on: Machine) -> Timing | None:
        """Return the latest timing of a name, if any."""
        timings = self.timings.get((on, name), {})
        return max(timings.values(), key=lambda timing: timing.dated, default=None)

    def by_machine(self, names: Iterable[str], on: Machine) -> list[dict[str, Timing]]:
        """Return the timings of the names on each machine that has all of them."""
        listed = list(names)
        timings = [self.timings.get((on, name), {}) for name in listed]
        common = sorted(set.intersection(*map(set, timings))) if timings else []
        return [{name: each[machine] for name, each in zip(listed, timings, strict=True)} for machine in common]

    @staticmethod
    def merge(records: Iterable[Record]) -> Measured:
        """Merge records. Timings of one machine on two days are those of two machines: none is dropped."""
        merged_timings: dict[tuple[Machine, str], dict[str, Timing]] = {}
        for record in records:
            for named in record.timings.values():
                for name, timing in named.items():
                    merged_timings.setdefault((timing.on, name), {})[str(timing.origin)] = timing
        return Measured(merged_timings)


@cache
def shipped(paper: str) -> Measured:
    """Return the shipped measurements of a paper."""
    return Measured.merge(record for path in sorted(FOLDER.glob("*.json")) if (record := load(path)).paper == paper)


def load(path: Path) -> Record:
    """Read a record. Raises InputError for an invalid file."""
    from .schema import Record as Schema  # late: msgspec

    try:
        content = json_of(contents(path))
        require(content, Schema)
    except ValueError as error:
        raise InputError(f"{printable(path)}: expected a record of `simtbed report --measure`: {error}") from None
    timings = {
        machine: {name: Timing(**timing, on=Machine(machine)) for name, timing in named.items()}
        for machine, named in content["timings"].items()
    }
    return Record(content["paper"], timings)


def text(record: Record) -> str:
    """Return the text of the file of a record."""
    content = asdict(record)
    for timings in content["timings"].values():
        for timing in timings.values():
            del timing["on"]  # the key of `timings`
    return json.dumps(content, indent=1, sort_keys=True)


@dataclass(frozen=True)
class Session:
    """Settings of a measurement.

    only: pattern of names. repeat: runs per time. here: names of the available machines. save: receives each time as a
    record, as soon as it is measured. show: receives the name of the current step.
    """

    only: str
    repeat: int
    machines: Mapping[Machine, str]
    save: Callable[[Record], None]
    show: Callable[[str], None] = lambda step: None


def measure(paper: str, benchmarks: Iterable[Benchmark], session: Session) -> list[str]:
    """Measure the selected benchmarks, medians of `repeat` runs; return a line for each failure.

    A benchmark with wrong answers is not timed; a failure does not affect the other benchmarks. Raises SimtbedError if no
    benchmark is selected.
    """
    selected = [b for b in benchmarks if b.machine in session.machines and fnmatchcase(b.name, session.only)]
    if not selected:
        raise SimtbedError(f"{paper}: no benchmark of this machine matches {session.only!r}")
    wrong = _run_checks(list({(b.check.name, b.machine): b.check for b in selected}.values()), session.show)
    failed = []
    for benchmark in selected:
        reason = wrong[benchmark.check.name] or _time(paper, benchmark, session)
        if reason:
            failed.append(f"{benchmark.name}, {benchmark.machine}: {reason}")
    return failed


def _time(paper: str, benchmark: Benchmark, session: Session) -> str:
    """Time a benchmark and save the record; return the reason of a failure or ""."""
    session.show(f"{benchmark.name}, {benchmark.machine}")
    try:
        milliseconds, work = benchmark.run(session.repeat)
    except Exception as error:  # the remaining benchmarks are independent of this one
        return _reason(error)
    machine, today = benchmark.machine, date.today().isoformat()
    timing = Timing(statistics.median(milliseconds), work, session.machines[machine], today, machine)
    session.save(Record(paper, {machine.value: {benchmark.name: timing}}))
    return ""


def _run_checks(checks: Sequence[Check], show: Callable[[str], None]) -> dict[str, str]:
    """Return the failure of each check by name, "" if it agrees. Checks run concurrently: most of their time is compilation."""

    def failure(check: Check) -> str:
        show(f"{check.name}, against its oracle")
        try:
            agreement = check.run()
        except Exception as error:
            return _reason(error)
        if agreement.agrees and agreement.compared:
            return ""
        return f"{agreement.differing} of {agreement.compared} answers are wrong"

    with ThreadPoolExecutor(current_cores()) as threads:
        return dict(zip((check.name for check in checks), threads.map(failure, checks), strict=True))


def _reason(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or repr(error)


def require_same_machines(older: Record, paper: str, machines: Mapping[Machine, str]) -> None:
    """Raise SimtbedError if a record belongs to another paper or to other machines."""
    if older.paper != paper:
        raise SimtbedError(f"the record is of {older.paper}, not of {paper}")
    for machine, name in machines.items():
        for timing in older.timings.get(machine, {}).values():
            if timing.machine != name:
                raise SimtbedError(f"the record is of another machine: {timing.machine}, not {name}")


def merged(older: Record, newer: Record) -> Record:
    """Merge two records; timings of the newer one take precedence."""
    timings = {machine: dict(named) for machine, named in older.timings.items()}
    for machine, named in newer.timings.items():
        timings.setdefault(machine, {}).update(named)
    return Record(newer.paper, timings)


DESCRIPTION = Path("/proc/cpuinfo")
"""Description of the processor on Linux."""


def available() -> dict[Machine, str]:
    """Return the names of the machines, with the number of cores; a GPU only if it can run kernels."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    names = {Machine.core: processor(), Machine.cores: f"{processor()}, {cores} cores"}
    if why_unavailable("cuda") is None:
        from simtbed.engines.cuda.engine import describe

        names[Machine.gpu] = describe()["device"]
    return names


def processor() -> str:
    """Return the name of the processor as reported by the system."""
    with suppress(OSError):
        if match := re.search(rb"^model name\s*: (.+)$", contents(DESCRIPTION), re.MULTILINE):
            return match[1].decode(errors="replace").strip()
    return platform.processor() or platform.machine()


Problem = TypeVar("Problem")
TOLERANCE = 1e-9
"""Relative difference of two computations in double precision."""


def on_gpu(family: Family[Problem], variant: str, make_problem: Callable[[], Problem], label: str = "") -> Check:
    """Return the check of a variant on the GPU against the oracle. label: the problem, if there are several."""

    def run() -> Agreement:
        problem = make_problem()
        return family.compare(family.solve(problem, variant, Runner("cuda")), family.oracle(problem))

    return Check(f"{family.name} {variant}{label and f', {label}'}", run)


def equal(actual: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]) -> Agreement:
    """Compare doubles within TOLERANCE."""
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(actual == expected, 0.0, np.abs(actual / expected - 1))
    differing = int((~(error <= TOLERANCE)).sum())
    return Agreement(error.size, differing, float(np.nanmax(error, initial=0.0)), TOLERANCE, "relative")
