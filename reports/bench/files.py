"""Whole commands from file to file: the inputs and their seeds, the command lines, and other programs on the same inputs."""

from __future__ import annotations

import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from simtbed import SimtbedError, UnavailableError
from simtbed.kernels.files import contents, opened, write
from simtbed.runtime.cores import current_cores
from simtbed.runtime.registry import EngineName

from .. import tables
from ..terminal import progress
from .files_made import aligned_pairs, equal_pairs, likelihood_file, variants

SIMTBED = (sys.executable, "-m", "simtbed")
GENOME = 1_200_000
LARGE_GENOME = 20_000_000
COPIES = 817
PAIRS, VCF = "pairhmm/10s.in", "sfs_1000g/small.vcf.gz"
"""Published files, in the folder that SIMTBED_DATA names."""
GZIP_LEVEL = 6


@dataclass(frozen=True)
class Row:
    """A line of the table. make: writes the input into a folder; None where the command needs none. command: its words,
    with {in} and {out}. records: of the input, of that unit. peer: another program's name and its words. only: an engine
    that it is for."""

    name: str
    make: Callable[[Path], Path | None]
    command: str
    records: int
    unit: str
    peer: str = ""
    only: EngineName | None = None


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
    """The same file in one member of gzip, as gzip makes it."""

    def members(path: Path) -> Iterator[bytes]:
        packer = zlib.compressobj(GZIP_LEVEL, wbits=31)
        with opened(path) as source:
            while some := source.read(1 << 22):
                yield packer.compress(some)
        yield packer.flush()

    def made(folder: Path) -> Path:
        path = folder / name
        write(path, members(make(folder)))
        return path

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
        write(folder / name, parts())
        return folder / name

    return make


READS, LARGE = _simulated(GENOME, 60, 36, "reads.fastq"), _simulated(LARGE_GENOME, 50, 100, "large.fastq.gz")
LIGHTER = "lighter -r {in} -k 20 %d 0.1 -t {threads} -od {folder}"
ROWS = (
    Row("start", _nothing, "sfs --example -o {out}", 1, "starts", peer=f"{sys.executable} -c 'import numpy'"),
    Row("simulate", _nothing, f"simulate --genome {GENOME} --coverage 60 --length 36 -o {{out}}", 2_000_000, "reads"),
    Row("correct", READS, "correct {in} -o {out} --engine {engine}", 2_000_000, "reads", LIGHTER % GENOME),
    Row(
        "correct-bgzf", LARGE, "correct {in} -o {out}.gz --engine {engine}", 10_000_000, "reads", LIGHTER % LARGE_GENOME
    ),
    Row(
        "correct-gzip",
        _as_gzip(LARGE, "large.gzip"),
        "correct {in} -o {out}.gz --engine {engine}",
        10_000_000,
        "reads",
    ),
    Row("align", _written("pairs.tsv", aligned_pairs), "align {in} -o {out} --engine {engine}", 100_000, "pairs"),
    Row("pairhmm", _published(PAIRS, COPIES), "pairhmm {in} -o {out} --engine {engine}", 817 * 3_550, "pairs"),
    Row(
        "one-gpu",
        _written("equal.in", equal_pairs),
        "pairhmm {in} -o {out} --engine cuda",
        655_360,
        "pairs",
        only="cuda",
    ),
    Row(
        "two-gpus",
        _written("equal.in", equal_pairs),
        "pairhmm {in} -o {out} --engine cuda --gpus 2",
        655_360,
        "pairs",
        only="cuda",
    ),
    Row(
        "sfs-npz",
        lambda folder: likelihood_file(folder / "likelihoods.npz"),
        "sfs {in} -o {out}.npz --format npz --mode product --engine {engine}",
        5_461,
        "sites",
    ),
    Row("sfs-vcf", _published(VCF), "sfs {in} -o {out} --engine {engine}", 5_417, "sites"),
    Row(
        "sfs-many",
        _written("many.vcf", lambda: variants(1_000_000)),
        "sfs {in} -o {out} --engine {engine}",
        1_000_000,
        "sites",
    ),
)


def bench(engine: EngineName, repeat: int, only: list[str], json: bool) -> int:
    """Run every row, or those of some names, once and then `repeat` times; print medians."""
    if unknown := set(only) - {row.name for row in ROWS}:
        raise SimtbedError(f"bench files has no {unknown.pop()!r}; it has {', '.join(row.name for row in ROWS)}")
    found = []
    for row in ROWS:
        if (row.name in only or not only) and row.only in (None, engine):
            with tempfile.TemporaryDirectory() as folder, progress(row.name):
                found.append(measured(row, engine, repeat, Path(folder)))
    if json:
        print(tables.as_json({"cores": current_cores(), "engine": engine, "rows": found}))
        return 0
    cells = [
        [
            one["name"],
            *(one.get(name, "") for name in ("seconds", "of processors", "MB resident", "a second", "beside")),
        ]
        for one in found
    ]
    print(tables.table(["command", "s", "s of processors", "MB resident", "records/s", "beside, s"], cells))
    for one in found:
        print((one.get("missing") and f"{one['name']}: {one['missing']}") or f"{one['name']}: {one['command']}")
    return 0


def measured(row: Row, engine: EngineName, repeat: int, folder: Path) -> dict[str, Any]:
    """A row as figures, medians of `repeat` runs after a first one, which fills the caches."""
    try:
        source = row.make(folder)
    except UnavailableError as error:
        return {"name": row.name, "missing": str(error)}
    places = {
        "in": source, "out": folder / "out", "engine": engine, "folder": folder / "peer", "threads": current_cores(),
    }  # fmt: skip
    words = row.command.format(**places).split()
    runs = [_run([*SIMTBED, *words]) for _ in range(repeat + 1)][1:]
    found: dict[str, Any] = {
        "name": row.name,
        "command": f"simtbed {row.command}",
        "records": row.records,
        "unit": row.unit,
        "seconds": round(statistics.median(one.wall for one in runs), 3),
        "of processors": round(statistics.median(one.processors for one in runs), 3),
        "MB resident": round(max(one.memory for one in runs) / 1e6),
    }
    found["a second"] = round(row.records / found["seconds"])
    peer = shlex.split(row.peer.format(**places)) if row.peer else []
    if peer and shutil.which(peer[0]):
        others = [_run(peer) for _ in range(repeat + 1)][1:]
        found |= {"peer": row.peer, "beside": round(statistics.median(one.wall for one in others), 3)}
    return found


def _run(words: list[str]) -> Took:
    """Run a program to its end, without its output. Raises SimtbedError where it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SimtbedError(f"{shlex.join(words)} ended with {process.returncode}")
    return Took(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
