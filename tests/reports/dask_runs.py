"""Clusters, and command lines that are run with and without one, for the tests of `--dask`."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import Client

from tests.reports.conftest import Simtbed

Run = Callable[..., tuple[str, dict[str, bytes]]]


@dataclass
class Watched:
    """A function that counts its calls, and kills a worker of the client, if any, at call number `fatal`."""

    function: Callable[..., Any]
    fatal: int
    client: Client | None
    calls: int = 0
    killed: bool = False

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        if self.calls == self.fatal:
            if self.client is not None:
                os.kill(next(iter(self.client.run(os.getpid).values())), signal.SIGKILL)
            self.killed = True
        return self.function(*arguments)


@dataclass(frozen=True)
class Cluster:
    """The address of a scheduler. client: of workers to kill, None to kill none. scale: multiple of the size of inputs."""

    address: str
    client: Client | None = None
    scale: int = 1

    def watch(self, function: Callable[..., Any], fatal: int) -> Watched:
        return Watched(function, fatal, self.client)


def simulate_reads(simtbed: Simtbed, genome: int, *more: str) -> None:
    """Simulate reads of 36 to 50 bases at a coverage of 30."""
    line = ("simulate", "--genome", str(genome), "--coverage", "30", "--length", "36-50", "--error-rate", "0.02")
    assert simtbed(*line, *more).code == 0


def correction(kind: str, genome: int, simtbed: Simtbed, folder: Path) -> Run:
    """Return `run(name, *options)`: it corrects simulated reads and returns stdout and the files written.

    `kind` is "single", "pairs", "fasta" or "blocked" (single reads with a blocked Bloom filter).
    """
    first, second, truth, fasta = (folder / name for name in ("r1.fastq", "r2.fastq", "truth.fasta", "r.fasta"))
    simulate_reads(simtbed, genome, "-o", str(first), "--truth", str(truth))
    simulate_reads(simtbed, genome, "-o", str(second), "--seed", "2")
    lines = first.read_text().splitlines()
    fasta.write_text("".join(f">{name[1:]}\n{read}\n" for name, read in zip(lines[::4], lines[1::4], strict=True)))
    arguments = {
        "single": (str(first), "--truth", str(truth)),
        "fasta": (str(fasta), "--no-trim"),
        "blocked": (str(first), "--truth", str(truth), "--filter", "blocked", "--variant", "warp-per-read"),
    }

    def run(name: str, *more: str) -> tuple[str, dict[str, bytes]]:
        outputs = {option: folder / name / option for option in ("output", "discarded", "log")}
        (folder / name).mkdir()
        line = arguments.get(kind, (str(first), str(second), "-p", str(folder / name / "mates")))
        message = simtbed("correct", *line, *(f"--{o}={path}" for o, path in outputs.items()), "--k=16", *more)
        assert (message.code, message.err) == (0, "")
        return message.out, {path.name: path.read_bytes() for path in (folder / name).iterdir()}

    return run


def serial_and_shared_spectrum(
    genome: int, address: str, simtbed: Simtbed, folder: Path
) -> tuple[tuple[str | bytes, ...], ...]:
    """Return stdout, reads and spectrum of `correct`, of a serial run and of a run on the cluster at `address`."""
    reads = folder / "reads.fastq"
    simulate_reads(simtbed, genome, "-o", str(reads))
    results: list[tuple[str | bytes, ...]] = []
    for more in ((), ("--dask", address)):
        outputs = (folder / f"reads{len(more)}", folder / f"spectrum{len(more)}")
        line = ("correct", str(reads), "-o", str(outputs[0]), "--save-spectrum", str(outputs[1]), "--k=16", *more)
        message = simtbed(*line)
        assert (message.code, message.err) == (0, "")
        results.append((message.out, *(path.read_bytes() for path in outputs)))
    return tuple(results)
