"""Whole commands from file to file: the inputs and their seeds, the command lines, and other programs on the same inputs."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from simtbed import SimtbedError, UnavailableError
from simtbed.kernels.files import contents, is_file_name, printable, temporary_file, write
from simtbed.runtime.cores import current_cores
from simtbed.runtime.registry import EngineName

from .. import tables
from ..terminal import progress
from .files_made import aligned_pairs, as_gzip, equal_pairs, likelihood_file, variants

SIMTBED = (sys.executable, "-m", "simtbed")
GENOME = 1_200_000
LARGE_GENOME = 20_000_000
COPIES = 817
PAIRS, VCF = "pairhmm/10s.in", "sfs_1000g/small.vcf.gz"
"""Published files, in the folder that SIMTBED_DATA names."""
BARE = {"cuda": "import numpy, pycuda.autoinit"}
"""What a start is held to, by engine: Python with NumPy, and on a GPU a context."""
_LAUNCHER = """
import json, os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
wall = time.perf_counter() - start
print(json.dumps([os.waitstatus_to_exitcode(status), wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]))
"""
"""Runs a program: its exit status and the figures of `Took`. A small process of its own, for on Linux the peak memory of
a program begins with that of the process that started it."""


@dataclass(frozen=True)
class Row:
    """A line of the table. make: writes the input into a folder, unless it is there; None where the command needs none.
    command: its words, with {in} and {out}. records: of the input, of that unit. peer: another program's name and its
    words. only: an engine that it is for. inputs: what neighbours that share their inputs call them."""

    name: str
    make: Callable[[Path], Path | None]
    command: str
    records: int
    unit: str
    peer: str = ""
    only: EngineName | None = None
    inputs: str = ""


class Took(NamedTuple):
    """Of a process: seconds, seconds of processors, bytes of resident memory at most."""

    wall: float
    processors: float
    memory: int


def _nothing(folder: Path) -> None:
    return None


def _simulated(genome: int, coverage: int, length: int, name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        if not path.exists():
            words = f"simulate --genome {genome} --coverage {coverage} --length {length} --seed 1 -o".split()
            subprocess.run([*SIMTBED, *words, path], check=True, stdout=subprocess.DEVNULL)
        return path

    return make


def _as_gzip(make: Callable[[Path], Path], name: str) -> Callable[[Path], Path]:
    """The same file in one member of gzip."""

    def made(folder: Path) -> Path:
        write(folder / name, as_gzip(make(folder)))
        return folder / name

    return made


def _published(name: str, copies: int = 1) -> Callable[[Path], Path]:
    """So many copies of a published file. Raises UnavailableError where it is not there."""

    def make(folder: Path) -> Path:
        data = os.environ.get("SIMTBED_DATA")
        if not data or not (Path(data) / name).exists():
            raise UnavailableError(f"SIMTBED_DATA names no folder with {name}")
        once = contents(Path(data) / name)
        write(folder / Path(name).stem, (once for _ in range(copies)))
        return folder / Path(name).stem

    return make


def _written(name: str, parts: Callable[[], Iterable[bytes]]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        if not path.exists():
            write(path, parts())
        return path

    return make


READS, LARGE = _simulated(GENOME, 60, 36, "reads.fastq"), _simulated(LARGE_GENOME, 50, 100, "large.fastq.gz")
LIGHTER = "lighter -r {in} -k 20 %d 0.1 -t {threads} -od {folder}"
ROWS = (
    Row(
        "start",
        _nothing,
        "sfs --example -o {out} --engine {engine}",
        1,
        "starts",
        peer=f"{sys.executable} -c '{{bare}}'",
    ),
    Row("simulate", _nothing, f"simulate --genome {GENOME} --coverage 60 --length 36 -o {{out}}", 2_000_000, "reads"),
    Row("correct", READS, "correct {in} -o {out} --engine {engine}", 2_000_000, "reads", LIGHTER % GENOME),
    Row("align", _written("pairs.tsv", aligned_pairs), "align {in} -o {out} --engine {engine}", 100_000, "pairs"),
    Row("pairhmm", _published(PAIRS, COPIES), "pairhmm {in} -o {out} --engine {engine}", 817 * 3_550, "pairs"),
    Row("sfs-vcf", _published(VCF), "sfs {in} -o {out} --engine {engine}", 5_417, "sites"),
    Row(
        "sfs-npz",
        lambda folder: likelihood_file(folder / "likelihoods.npz"),
        "sfs {in} -o {out}.npz --format npz --mode product --engine {engine}",
        5_461,
        "sites",
    ),
    Row(
        "one-gpu",
        _written("equal.in", equal_pairs),
        "pairhmm {in} -o {out} --engine cuda",
        655_360,
        "pairs",
        only="cuda",
        inputs="equal",
    ),
    Row(
        "two-gpus",
        _written("equal.in", equal_pairs),
        "pairhmm {in} -o {out} --engine cuda --gpus 2",
        655_360,
        "pairs",
        only="cuda",
        inputs="equal",
    ),
    Row(
        "correct-bgzf",
        LARGE,
        "correct {in} -o {out}.gz --engine {engine}",
        10_000_000,
        "reads",
        LIGHTER % LARGE_GENOME,
        inputs="large",
    ),
    Row(
        "correct-gzip",
        _as_gzip(LARGE, "large.gzip"),
        "correct {in} -o {out}.gz --engine {engine}",
        10_000_000,
        "reads",
        inputs="large",
    ),
    Row(
        "sfs-many",
        _written("many.vcf", lambda: variants(1_000_000)),
        "sfs {in} -o {out} --engine {engine}",
        1_000_000,
        "sites",
    ),
)
"""The short ones first: a run that is ended for its time has them."""


def bench(engine: EngineName, repeat: int, only: list[str], json: bool, target: Path | None = None) -> int:
    """Run every row, or those of some names, once and then `repeat` times; print medians. target: a file that is written
    anew after each row, as JSON. A row that fails is told and the others go on; then the exit code is 3."""
    if unknown := set(only) - {row.name for row in ROWS}:
        raise SimtbedError(f"bench files has no {unknown.pop()!r}; it has {', '.join(row.name for row in ROWS)}")
    if target is not None and not is_file_name(target):
        raise SimtbedError(f"{printable(target)}: --output names a file that is written after each row")
    chosen = [row for row in ROWS if (row.name in only or not only) and row.only in (None, engine)]
    found: list[dict[str, Any]] = []

    def content() -> str:
        return tables.as_json({"cores": current_cores(), "engine": engine, "repeat": repeat, "rows": found})

    for _, rows in groupby(chosen, key=lambda row: row.inputs or row.name):
        with tempfile.TemporaryDirectory() as folder:
            for row in rows:
                with progress(row.name):
                    found.append(_measured(row, engine, repeat, Path(folder)))
                if target is not None:
                    write(target, [content(), "\n"])
    print(content() if json else _table(found))
    return 3 if any("failed" in one for one in found) else 0


def _table(found: list[dict[str, Any]]) -> str:
    columns = ("seconds", "of processors", "MB resident", "a second", "beside")
    cells = [[one["name"], *(one.get(name, "") for name in columns)] for one in found]
    headers = ["command", "s", "s of processors", "MB resident", "records/s", "beside, s"]
    told = (f"{one['name']}: {one.get('missing') or one.get('failed') or one['command']}" for one in found)
    return "\n".join([tables.table(headers, cells), *told])


def _measured(row: Row, engine: EngineName, repeat: int, folder: Path) -> dict[str, Any]:
    """A row as figures, or why there are none."""
    start = time.perf_counter()
    try:
        found = measured(row, engine, repeat, folder)
    except UnavailableError as error:
        found = {"name": row.name, "missing": str(error)}
    except (SimtbedError, OSError, subprocess.CalledProcessError) as error:
        found = {"name": row.name, "failed": str(error)}
    return {**found, "seconds of the row": round(time.perf_counter() - start, 1)}


def measured(row: Row, engine: EngineName, repeat: int, folder: Path) -> dict[str, Any]:
    """A row as figures, medians of `repeat` runs after a first one, which fills the caches; the runs' own seconds beside
    them. Raises UnavailableError where its input is not there, SimtbedError where a program fails."""
    source = row.make(folder)
    places = {
        "in": source, "out": folder / "out", "engine": engine, "folder": folder / "peer", "threads": current_cores(),
        "bare": BARE.get(engine, "import numpy"),
    }  # fmt: skip
    words = row.command.format(**places).split()
    runs = [_run([*SIMTBED, *words]) for _ in range(repeat + 1)][1:]
    seconds = statistics.median(one.wall for one in runs)
    found: dict[str, Any] = {
        "name": row.name,
        "command": f"simtbed {row.command}",
        "records": row.records,
        "unit": row.unit,
        "seconds": round(seconds, 3),
        "of processors": round(statistics.median(one.processors for one in runs), 3),
        "MB resident": round(max(one.memory for one in runs) / 1e6),
        "a second": round(row.records / seconds),
        "runs": [round(one.wall, 3) for one in runs],
    }
    peer = shlex.split(row.peer.format(**places)) if row.peer else []
    if peer and shutil.which(peer[0]):
        with suppress(SimtbedError):  # of another program, which may lack something here
            others = [_run(peer) for _ in range(repeat + 1)][1:]
            found |= {
                "peer": row.peer,
                "beside": round(statistics.median(one.wall for one in others), 3),
                "beside, of processors": round(statistics.median(one.processors for one in others), 3),
            }
    return found


def _run(words: list[str]) -> Took:
    """Run a program to its end, without its output. Raises SimtbedError, with what it said last, where it fails."""
    with temporary_file() as told:
        launched = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, *words], stdout=subprocess.PIPE, stderr=told
        )
        launched.check_returncode()
        code, *figures = json.loads(launched.stdout)
        if code:
            told.seek(0)
            said = told.read().decode(errors="replace").strip().splitlines() or ["without a word"]
            raise SimtbedError(f"{shlex.join(words)} ended with {code}: {printable(said[-1][:300])}")
    return Took(*figures)
