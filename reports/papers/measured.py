"""Times that machines have measured of a paper's work: how they are taken, and the files that hold them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from simtbed import SimtbedError
from simtbed.kernels import InputError
from simtbed.kernels.files import contents

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
class Timed:
    """Something to take the time of. run: how often, to the milliseconds of each time and the work of one."""

    name: str
    machine: Machine
    run: Callable[[int], tuple[list[float], float]]


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
    tell: Callable[[str], None] = lambda done: None,
) -> Record:
    """Take the times whose names fit `only`, medians of `repeat`. here: the names of the machines that are here. tell:
    takes what is being timed. Raises SimtbedError where there is none."""
    found: dict[str, dict[str, Timing]] = {}
    for one in timed:
        if one.machine not in here or not fnmatchcase(one.name, only):
            continue
        tell(f"{one.name}, {one.machine}")
        milliseconds, work = one.run(repeat)
        timing = Timing(statistics.median(milliseconds), work, here[one.machine])
        found.setdefault(one.machine.value, {})[one.name] = timing
    if not found:
        raise SimtbedError(f"{paper}: nothing that fits {only!r} can be measured here")
    return Record(paper, date.today().isoformat(), found)


def merged(older: Record, newer: Record) -> Record:
    """The newer timings in place of the older ones, which otherwise stay. Raises SimtbedError where the two are of
    different papers or machines."""
    if older.paper != newer.paper:
        raise SimtbedError(f"the record is of {older.paper}, not of {newer.paper}")
    together = {machine: dict(timings) for machine, timings in older.timings.items()}
    for machine, timings in newer.timings.items():
        known = together.setdefault(machine, {})
        names = {timing.machine for timing in (*known.values(), *timings.values())}
        if len(names) > 1:
            raise SimtbedError(f"the record was taken with another machine: {' and '.join(sorted(names))}")
        known.update(timings)
    return Record(newer.paper, newer.dated, together)
