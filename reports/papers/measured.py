"""Times that machines have measured of a paper's work: how they are taken, and the files that hold them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from simtbed import SimtbedError
from simtbed.kernels import Agreement, InputError
from simtbed.kernels.files import contents
from simtbed.runtime.cores import current_cores

FOLDER = Path(__file__).parent / "records"


class Machine(StrEnum):
    """What a time is of: kernels on a GPU, or a compiled plain loop on one core or on all cores of a CPU."""

    gpu = "GPU"
    core = "one core"
    cores = "all cores"


@dataclass(frozen=True)
class Timing:
    """milliseconds: a median. work: how many of the paper's units of work that was; its timings say which. machine: by
    name, with the number of cores."""

    milliseconds: float
    work: float
    machine: str

    @property
    def rate(self) -> float:
        """Units of work a second."""
        return 1e3 * self.work / self.milliseconds


@dataclass(frozen=True)
class Check:
    """What shows that the right thing is timed: its answers beside others that are known to be right. Checks of one name
    are one check."""

    name: str
    run: Callable[[], Agreement]


@dataclass(frozen=True)
class Timed:
    """Something to take the time of, once its check agrees. run: how often, to the milliseconds of each time and the work
    of one."""

    name: str
    machine: Machine
    run: Callable[[int], tuple[list[float], float]]
    check: Check


@dataclass(frozen=True)
class Record:
    """What one machine measured of a paper. timings: by machine and name."""

    paper: str
    dated: str
    timings: Mapping[str, Mapping[str, Timing]]


@dataclass(frozen=True)
class Measured:
    """The timings of one paper from all records; an empty one where nothing was measured."""

    timings: Mapping[tuple[str, str], Timing] = field(default_factory=dict)

    def timing(self, name: str, machine: Machine) -> Timing | None:
        """What was measured under a name, if it was."""
        return self.timings.get((machine.value, name))

    @staticmethod
    def of(records: Iterable[Record]) -> Measured:
        """Of later records where several have a timing."""
        found: dict[tuple[str, str], Timing] = {}
        for record in sorted(records, key=lambda record: record.dated):
            for machine, timings in record.timings.items():
                found |= {(machine, name): timing for name, timing in timings.items()}
        return Measured(found)


@cache
def shipped(paper: str) -> Measured:
    """What the records that ship with the package hold of a paper."""
    return Measured.of(record for path in sorted(FOLDER.glob("*.json")) if (record := load(path)).paper == paper)


def load(path: Path) -> Record:
    """A record from its file. Raises InputError where it is none."""
    try:
        read = json.loads(contents(path))
        timings = {
            machine: {name: Timing(**timing) for name, timing in found.items()}
            for machine, found in read["timings"].items()
        }
        return Record(str(read["paper"]), str(read["dated"]), timings)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: expected a record of `simtbed report --measure`, found {error!r}") from None


def text(record: Record) -> str:
    """A record as its file's text."""
    content: dict[str, Any] = asdict(record)
    return json.dumps(content, indent=1, sort_keys=True)


def take(
    paper: str,
    timed: Iterable[Timed],
    only: str,
    repeat: int,
    here: Mapping[Machine, str],
    keep: Callable[[Record], None],
    tell: Callable[[str], None] = lambda done: None,
) -> list[str]:
    """Take the times whose names fit `only`, medians of `repeat`; answers what failed, a line each. here: the names of the
    machines that are here. keep: takes each time as a record of its own, as soon as it is taken. tell: takes what is being
    timed. Raises SimtbedError where there is nothing to time.

    What gives wrong answers is not timed; what fails leaves the rest.
    """
    chosen = [one for one in timed if one.machine in here and fnmatchcase(one.name, only)]
    if not chosen:
        raise SimtbedError(f"{paper}: nothing that fits {only!r} can be measured here")
    wrong = _checked(list({(one.check.name, one.machine): one.check for one in chosen}.values()), tell)
    failed = []
    for one in chosen:
        reason = wrong[one.check.name]
        if not reason:
            tell(f"{one.name}, {one.machine}")
            try:
                milliseconds, work = one.run(repeat)
            except Exception as error:  # whatever it is, the other times are wanted
                reason = _reason(error)
            else:
                timing = Timing(statistics.median(milliseconds), work, here[one.machine])
                keep(Record(paper, date.today().isoformat(), {one.machine.value: {one.name: timing}}))
        if reason:
            failed.append(f"{one.name}, {one.machine}: {reason}")
    return failed


def _checked(checks: Sequence[Check], tell: Callable[[str], None]) -> dict[str, str]:
    """What is wrong by each check, by its name. They run side by side, for most of a check on a GPU is its compiler."""

    def wrong(check: Check) -> str:
        tell(f"{check.name}, against its oracle")
        try:
            found = check.run()
        except Exception as error:
            return _reason(error)
        return "" if found.agrees and found.compared else f"{found.differing} of {found.compared} answers are wrong"

    with ThreadPoolExecutor(current_cores()) as threads:
        return dict(zip((check.name for check in checks), threads.map(wrong, checks), strict=True))


def _reason(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or repr(error)


def require_same_machines(older: Record, paper: str, here: Mapping[Machine, str]) -> None:
    """Raises SimtbedError where a record cannot take times of this paper on these machines."""
    if older.paper != paper:
        raise SimtbedError(f"the record is of {older.paper}, not of {paper}")
    for machine, name in here.items():
        for timing in older.timings.get(machine, {}).values():
            if timing.machine != name:
                raise SimtbedError(f"the record was taken with another machine: {timing.machine}, not {name}")


def merged(older: Record, newer: Record) -> Record:
    """The newer timings in place of the older ones, which otherwise stay."""
    together = {machine: dict(timings) for machine, timings in older.timings.items()}
    for machine, timings in newer.timings.items():
        together.setdefault(machine, {}).update(timings)
    return Record(newer.paper, newer.dated, together)
