"""`simtbed bench files`: whole commands from file to file, compared with other programs on the same inputs."""

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
from simtbed.escaping import printable
from simtbed.kernels.files import contents, is_file_name, temporary_file, write
from simtbed.runtime.cores import current_cores
from simtbed.runtime.registry import EngineName

from .. import tables
from ..printing import print_text
from ..terminal import announced
from .generated_inputs import aligned_pairs, as_gzip, equal_pairs, likelihood_file, variants

SIMTBED = (sys.executable, "-m", "simtbed")
GENOME = 1_200_000
LARGE_GENOME = 20_000_000
COPIES = 817
PAIRS, VCF = "pairhmm/10s.in", "sfs_1000g/small.vcf.gz"
"""Published files in the folder SIMTBED_DATA."""
BARE = {"cuda": "import numpy, pycuda.autoinit"}
"""Baseline of a start by engine: Python with NumPy, on a GPU with a context."""
_LAUNCHER = """
import json, os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
wall = time.perf_counter() - start
print(json.dumps([os.waitstatus_to_exitcode(status), wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]))
"""
"""Runs a program; prints its exit status and the values of `ResourceUsage`. It runs in a small process: on Linux the peak
memory of a program starts at that of its parent."""


@dataclass(frozen=True)
class Row:
    """A benchmark of a command.

    make: writes the input into a folder, if missing; returns None without input. command: arguments, with {in} and {out}.
    records: number of input records in `unit`. peer: command line of another program. only: the required engine, if any.
    inputs: name of inputs shared with neighbouring rows.
    """

    name: str
    make: Callable[[Path], Path | None]
    command: str
    records: int
    unit: str
    peer: str = ""
    only: EngineName | None = None
    inputs: str = ""


class ResourceUsage(NamedTuple):
    """Wall time and processor time of a process in seconds, and its peak resident memory in bytes."""

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
    """Compress the file as one gzip member."""

    def make_gzip(folder: Path) -> Path:
        write(folder / name, as_gzip(make(folder)))
        return folder / name

    return make_gzip


def _published(name: str, copies: int = 1) -> Callable[[Path], Path]:
    """Concatenate copies of a published file. Raises UnavailableError if it is missing."""

    def make(folder: Path) -> Path:
        data = os.environ.get("SIMTBED_DATA")
        if not data or not (Path(data) / name).exists():
            raise UnavailableError(f"SIMTBED_DATA names no folder with {name}")
        once = contents(Path(data) / name)
        write(folder / Path(name).stem, (once for _ in range(copies)))
        return folder / Path(name).stem

    return make


def _written(name: str, content: Callable[[], Iterable[bytes]]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        if not path.exists():
            write(path, content())
        return path

    return make


READS, LARGE = _simulated(GENOME, 60, 36, "reads.fastq"), _simulated(LARGE_GENOME, 50, 100, "large.fastq.gz")
LIGHTER = "lighter -r {in} -k 20 %d 0.1 -t {threads} -od {folder}"
START = f"{sys.executable} -c '{{bare}}'"
EQUAL, ON_GPU = _written("equal.in", equal_pairs), "pairhmm {in} -o {out} --engine cuda"
PACKED = "correct {in} -o {out}.gz --engine {engine}"
SPECTRA = "sfs {in} -o {out} --engine {engine}"
PRODUCTS = "sfs {in} -o {out}.npz --format npz --mode product --engine {engine}"
ROWS = (
    Row("start", _nothing, "sfs --example -o {out} --engine {engine}", 1, "starts", START),
    Row("simulate", _nothing, f"simulate --genome {GENOME} --coverage 60 --length 36 -o {{out}}", 2_000_000, "reads"),
    Row("correct", READS, "correct {in} -o {out} --engine {engine}", 2_000_000, "reads", LIGHTER % GENOME),
    Row("align", _written("pairs.tsv", aligned_pairs), "align {in} -o {out} --engine {engine}", 100_000, "pairs"),
    Row("pairhmm", _published(PAIRS, COPIES), "pairhmm {in} -o {out} --engine {engine}", 817 * 3_550, "pairs"),
    Row("sfs-vcf", _published(VCF), SPECTRA, 5_417, "sites"),
    Row("sfs-npz", lambda folder: likelihood_file(folder / "likelihoods.npz"), PRODUCTS, 5_461, "sites"),
    Row("one-gpu", EQUAL, ON_GPU, 655_360, "pairs", only="cuda", inputs="equal"),
    Row("two-gpus", EQUAL, f"{ON_GPU} --gpus 2", 655_360, "pairs", only="cuda", inputs="equal"),
    Row("correct-bgzf", LARGE, PACKED, 10_000_000, "reads", LIGHTER % LARGE_GENOME, inputs="large"),
    Row("correct-gzip", _as_gzip(LARGE, "large.gzip"), PACKED, 10_000_000, "reads", inputs="large"),
    Row("sfs-many", _written("many.vcf", lambda: variants(1_000_000)), SPECTRA, 1_000_000, "sites"),
)
"""Short benchmarks first, so that an interrupted run includes them."""


def bench(engine: EngineName, repeat: int, only: list[str], json: bool, target: Path | None = None) -> int:
    """Run all rows, or selected ones, once and then `repeat` times; print medians.

    target: a JSON file, rewritten after each row. A failed row is reported; the others run, and the exit code is 3.
    """
    if unknown := set(only) - {row.name for row in ROWS}:
        raise SimtbedError(f"bench files has no {unknown.pop()!r}; it has {', '.join(row.name for row in ROWS)}")
    if target is not None and not is_file_name(target):
        raise SimtbedError(f"{printable(target)}: --output needs a file name: the file is rewritten after each row")
    chosen = [row for row in ROWS if (row.name in only or not only) and row.only in (None, engine)]
    results: list[dict[str, Any]] = []

    def content() -> str:
        return tables.as_json({"cores": current_cores(), "engine": engine, "repeat": repeat, "rows": results})

    for _, rows in groupby(chosen, key=lambda row: row.inputs or row.name):
        with tempfile.TemporaryDirectory() as folder:
            for row in rows:
                with announced(row.name):
                    results.append(_measured(row, engine, repeat, Path(folder)))
                if target is not None:
                    write(target, [content(), "\n"])
    print_text(content() if json else _table(results))
    return 3 if any("failed" in one for one in results) else 0


def _table(results: list[dict[str, Any]]) -> str:
    columns = ("seconds", "processor seconds", "MB resident", "records/s", "peer seconds")
    cells = [[one["name"], *(one.get(name, "") for name in columns)] for one in results]
    headers = ["command", "s", "processor s", "MB resident", "records/s", "peer s"]
    notes = (f"{one['name']}: {one.get('missing') or one.get('failed') or one['command']}" for one in results)
    return "\n".join([tables.table(headers, cells), *notes])


def _measured(row: Row, engine: EngineName, repeat: int, folder: Path) -> dict[str, Any]:
    """Measure a row, or return the reason of a failure."""
    start = time.perf_counter()
    try:
        result = measured(row, engine, repeat, folder)
    except UnavailableError as error:
        result = {"name": row.name, "missing": str(error)}
    except (SimtbedError, OSError, subprocess.CalledProcessError) as error:
        result = {"name": row.name, "failed": str(error)}
    return {**result, "seconds of the row": round(time.perf_counter() - start, 1)}


def measured(row: Row, engine: EngineName, repeat: int, folder: Path) -> dict[str, Any]:
    """Measure a row: medians of `repeat` runs after a warm-up run, and the seconds of each run.

    Raises UnavailableError if the input is missing, SimtbedError if a program fails.
    """
    source = row.make(folder)
    places = {
        "in": source, "out": folder / "out", "engine": engine, "folder": folder / "peer", "threads": current_cores(),
        "bare": BARE.get(engine, "import numpy"),
    }  # fmt: skip
    words = row.command.format(**places).split()
    runs = [_run([*SIMTBED, *words]) for _ in range(repeat + 1)][1:]
    seconds = statistics.median(one.wall for one in runs)
    result: dict[str, Any] = {
        "name": row.name,
        "command": f"simtbed {row.command}",
        "records": row.records,
        "unit": row.unit,
        "seconds": round(seconds, 3),
        "processor seconds": round(statistics.median(one.processors for one in runs), 3),
        "MB resident": round(max(one.memory for one in runs) / 1e6),
        "records/s": round(row.records / seconds),
        "runs": [round(one.wall, 3) for one in runs],
    }
    peer = shlex.split(row.peer.format(**places)) if row.peer else []
    if peer and shutil.which(peer[0]):
        with suppress(SimtbedError):  # a peer may be unusable on this machine
            peer_runs = [_run(peer) for _ in range(repeat + 1)][1:]
            result |= {
                "peer": row.peer,
                "peer seconds": round(statistics.median(one.wall for one in peer_runs), 3),
                "peer processor seconds": round(statistics.median(one.processors for one in peer_runs), 3),
            }
    return result


def _run(words: list[str]) -> ResourceUsage:
    """Run a program without its output. Raises SimtbedError with its last line if it fails."""
    with temporary_file() as errors:
        launched = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, *words], stdout=subprocess.PIPE, stderr=errors
        )
        launched.check_returncode()
        code, *figures = json.loads(launched.stdout)
        if code:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines() or ["no output"]
            raise SimtbedError(f"{shlex.join(words)} ended with {code}: {printable(lines[-1][:300])}")
    return ResourceUsage(*figures)
