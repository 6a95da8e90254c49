"""`--dask`: the same files as a serial run if a worker is killed in the middle."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from distributed import Client
from simtbed.cluster import connected
from simtbed.kernels.alignment.host import files as align_files
from simtbed.kernels.alignment.host import pipeline_files
from simtbed.kernels.correction.host import files as correction_files
from simtbed.kernels.correction.host import pipeline_files as pipeline_correct
from simtbed.kernels.correction.host.pipeline import Counter
from simtbed.kernels.correction.host.pipeline_files import Summary
from simtbed.kernels.files import contents, write
from simtbed.kernels.pairhmm.host import files
from simtbed.kernels.sfs.host import files_tsv, files_vcf
from simtbed.kernels.sfs.host import pipeline_files as sfs_pipeline
from simtbed.reports.bench.generated_inputs import aligned_pairs, variants
from simtbed.reports.cli import pairhmm, simulate

from tests.reports.conftest import Simtbed
from tests.reports.dask_runs import correction, serial_and_shared_spectrum


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Return a client of a real cluster of worker processes."""
    with connected("local") as result:
        yield result


def test_pairhmm_survives_a_killed_worker(
    simtbed: Simtbed, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, serial, shared = (tmp_path / name for name in ("pairs.in", "serial", "shared"))
    source.write_bytes(contents(files.EXAMPLE) * 20)
    assert simtbed("pairhmm", str(source), "-o", str(serial)).code == 0
    monkeypatch.setattr(files, "BLOCK", len(contents(files.EXAMPLE)))  # many blocks
    killing = killing_at(3, client, files.lines)
    monkeypatch.setattr(pairhmm, "lines", killing)
    result = simtbed("pairhmm", str(source), "-o", str(shared), "--check", "--dask", client.scheduler_info()["address"])
    assert result.code == 0 and "and the oracle agree" in result.out
    assert killing.calls > 10 and killing.killed > 0
    assert shared.read_bytes() == serial.read_bytes()


@pytest.mark.parametrize("form", ["tsv", "sam"])
def test_align_survives_a_killed_worker(
    form: str, simtbed: Simtbed, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, serial, shared = (tmp_path / name for name in ("pairs.tsv", "serial", "shared"))
    arguments.write_bytes(b"".join(islice(aligned_pairs(), 600)))
    line = ("align", str(arguments), "--format", form, "--max-memory", "64M")
    assert simtbed(*line, "-o", str(serial)).code == 0
    killing = killing_at(2, client, align_files.texts)
    monkeypatch.setattr(pipeline_files, "texts", killing)
    result = simtbed(*line, "-o", str(shared), "--dask", client.scheduler_info()["address"])
    assert (result.code, result.err) == (0, "")
    assert killing.calls > 5 and killing.killed > 0
    assert shared.read_bytes() == serial.read_bytes()


def killing_at(call: int, client: Client, work: Any) -> Any:
    """Return a function that kills a worker at its call number `call`, and otherwise does the same as `work`.

    Its attribute `calls` counts the calls. `killed` is the process number of the killed worker, -1 before.
    """

    def work_and_kill(*arguments: Any) -> Any:
        created.calls += 1
        if created.calls == call:
            created.killed = next(iter(client.run(os.getpid).values()))
            os.kill(created.killed, signal.SIGKILL)
        return work(*arguments)

    created: Any = work_and_kill
    created.calls, created.killed = 0, -1
    return created


@pytest.mark.parametrize("kind", ["single", "pairs", "fasta", "blocked"])
def test_correct_survives_a_killed_worker(
    kind: str, simtbed: Simtbed, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = correction(kind, 3000, simtbed, tmp_path)
    serial = run("serial")
    if kind == "pairs":  # mates are read in step: as many of each as the shorter file has
        assert len(serial[1]) == 4
    monkeypatch.setattr(correction_files, "PIECE", 10_000)  # many blocks
    killing = killing_at(3, client, Summary.add)
    monkeypatch.setattr(Summary, "add", killing)
    shared = run("shared", "--dask", client.scheduler_info()["address"])
    assert killing.calls > 6 and killing.killed > 0
    assert shared == serial
    assert len(shared[1]["discarded"]) > 0 and len(shared[1]["log"]) > 0


@pytest.mark.parametrize("letters", [2_000, 1 << 23])
def test_k_mers_are_counted_by_workers(
    letters: int, simtbed: Simtbed, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is killed between their answers; the spectrum and the reads are those of a serial run."""
    monkeypatch.setattr(pipeline_correct, "LETTERS_OF_WORKERS", letters)
    monkeypatch.setattr(correction_files, "PIECE", 10_000)  # many blocks
    killing = killing_at(3, client, Counter.take)
    monkeypatch.setattr(Counter, "take", killing)
    serial, shared = serial_and_shared_spectrum(2000, client.scheduler_info()["address"], simtbed, tmp_path)
    assert shared == serial
    assert killing.calls == 1 if letters > 10_000 else killing.calls > 6 and killing.killed > 0


@pytest.mark.parametrize("form", ["tsv", "npz", "vcf"])
def test_sfs_survives_a_killed_worker(
    form: str, simtbed: Simtbed, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, serial, shared = (tmp_path / name for name in ("many.vcf", "serial", "shared"))
    write(arguments, variants(300))
    line = ("sfs", str(arguments), "--format", form, "--mode", "gama")
    monkeypatch.setattr(files_vcf, "SECTION_BYTES", 20_000)  # many batches
    message = simtbed(*line, "-o", str(serial), "--spectrum", str(tmp_path / "one.tsv"))
    assert message.code == 0
    killing = killing_at(2, client, files_tsv.rows)
    if form == "tsv":
        monkeypatch.setattr(sfs_pipeline, "rows", killing)
    address = client.scheduler_info()["address"]
    again = simtbed(*line, "-o", str(shared), "--spectrum", str(tmp_path / "other.tsv"), "--dask", address)
    assert (again.code, again.out, again.err) == (0, message.out, "")
    if form == "tsv":
        assert killing.calls > 6 and killing.killed > 0
    assert shared.read_bytes() == serial.read_bytes()
    assert (tmp_path / "other.tsv").read_bytes() == (tmp_path / "one.tsv").read_bytes()


def test_simulate_survives_a_killed_worker(
    simtbed: Simtbed, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ("simulate", "--genome", "2000", "--coverage", "200", "--length", "30-45")
    monkeypatch.setattr(simulate, "BATCH_BASES", 20_000)  # many batches
    result, show = [], killing_at(3, client, lambda *_: None)
    for name in ("serial", "shared"):
        (tmp_path / name).mkdir()
        files = ["-o", str(tmp_path / name / "reads"), "--truth", str(tmp_path / name / "truth")]
        if name == "shared":
            monkeypatch.setattr(simulate, "progress_of_records", lambda *_: nullcontext(show))
            files += ["--dask", client.scheduler_info()["address"]]
        message = simtbed(*line, *files)
        assert (message.code, message.err) == (0, "")
        result.append((message.out, *((tmp_path / name / one).read_bytes() for one in ("reads", "truth"))))
    assert show.calls > 10 and show.killed > 0
    assert result[0] == result[1]
