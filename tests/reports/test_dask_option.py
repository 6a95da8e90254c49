"""`--dask`: the same files as a serial run. tests/validation runs these tests with processes, and kills one in the middle."""

from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import pytest
from distributed import LocalCluster
from simtbed.kernels.alignment.host import files as align_files
from simtbed.kernels.alignment.host import pipeline_files as align_pipeline
from simtbed.kernels.correction.host import files as correction_files
from simtbed.kernels.correction.host import pipeline_files as correction_pipeline
from simtbed.kernels.correction.host.pipeline import Counter
from simtbed.kernels.correction.host.pipeline_files import Summary
from simtbed.kernels.files import contents, write
from simtbed.kernels.pairhmm.host import files
from simtbed.kernels.pipeline import Flow
from simtbed.kernels.sfs.host import files_tsv, files_vcf
from simtbed.kernels.sfs.host import pipeline_files as sfs_pipeline
from simtbed.reports.bench.generated_inputs import aligned_pairs, variants
from simtbed.reports.cli import pairhmm, simulate

from tests.reports.conftest import Simtbed
from tests.reports.dask_runs import Cluster, correction, serial_and_shared_spectrum

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two workers that are threads of this process."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0"
    ) as local:
        yield Cluster(local.scheduler_address)


def doubled(n: int) -> int:
    return 2 * n


def failing(n: int) -> int:
    if n == 3:
        raise ValueError("no 3")
    return n


def test_a_stage_over_a_cluster_keeps_order_and_errors(cluster: Cluster) -> None:
    address = cluster.address
    doubles = Flow(range(20)).over_cluster(doubled, address)
    assert list(doubles.map(sum)) == [3 * n for n in range(20)]
    assert list(Flow(range(5)).map_pairs(doubled, address)) == list(Flow(range(5)).map_pairs(doubled))
    results: list[tuple[int, int]] = []
    with pytest.raises(ValueError, match="no 3"):
        Flow(range(20)).over_cluster(failing, address).into(results.append)
    assert results == [(0, 0), (1, 1), (2, 2)]


def test_pairhmm(simtbed: Simtbed, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, serial, shared = (tmp_path / name for name in ("pairs.in", "serial", "shared"))
    source.write_bytes(contents(files.EXAMPLE) * 4 * cluster.scale)
    assert simtbed("pairhmm", str(source), "-o", str(serial)).code == 0
    monkeypatch.setattr(files, "BLOCK", len(contents(files.EXAMPLE)))  # many blocks
    lines = cluster.watch(files.lines, 3)
    monkeypatch.setattr(pairhmm, "lines", lines)
    result = simtbed("pairhmm", str(source), "-o", str(shared), "--check", "--dask", cluster.address)
    assert result.code == 0 and "and the oracle agree" in result.out
    assert lines.calls > 2 and lines.killed
    assert shared.read_bytes() == serial.read_bytes()


@pytest.mark.parametrize("form", ["tsv", "sam"])
def test_align(form: str, simtbed: Simtbed, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, serial, shared = (tmp_path / name for name in ("pairs.tsv", "serial", "shared"))
    source.write_bytes(b"".join(islice(aligned_pairs(), 600)))
    line = ("align", str(source), "--format", form, "--max-memory", "64M")
    assert simtbed(*line, "-o", str(serial)).code == 0
    texts = cluster.watch(align_files.texts, 2)
    monkeypatch.setattr(align_pipeline, "texts", texts)
    result = simtbed(*line, "-o", str(shared), "--dask", cluster.address)
    assert (result.code, result.err) == (0, "")
    assert texts.calls >= 2 and texts.killed
    assert shared.read_bytes() == serial.read_bytes()


@pytest.mark.parametrize("kind", ["single", "pairs", "fasta", "blocked"])
def test_correct(
    kind: str, simtbed: Simtbed, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = correction(kind, 1000 * cluster.scale, simtbed, tmp_path)
    serial = run("serial")
    if kind == "pairs":  # mates are read in step: as many of both as the shorter file has
        assert len(serial[1]) == 4
    monkeypatch.setattr(correction_files, "PIECE", 10_000)  # many blocks
    add = cluster.watch(Summary.add, 3)
    monkeypatch.setattr(Summary, "add", lambda *arguments: add(*arguments))
    shared = run("shared", "--dask", cluster.address)
    assert add.calls > 2 and add.killed
    assert shared == serial
    assert len(shared[1]["discarded"]) > 0 and len(shared[1]["log"]) > 0


@pytest.mark.parametrize("letters", [2_000, 1 << 23])
def test_k_mers_are_counted_by_workers(
    letters: int, simtbed: Simtbed, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spectrum and the reads are those of a serial run."""
    monkeypatch.setattr(correction_pipeline, "LETTERS_OF_WORKERS", letters)
    monkeypatch.setattr(correction_files, "PIECE", 10_000)  # many blocks
    take = cluster.watch(Counter.take, 3)
    monkeypatch.setattr(Counter, "take", lambda *arguments: take(*arguments))
    serial, shared = serial_and_shared_spectrum(1000 * cluster.scale, cluster.address, simtbed, tmp_path)
    assert shared == serial
    assert take.calls == 1 if letters > 10_000 else take.calls > 2 and take.killed


@pytest.mark.parametrize("form", ["tsv", "npz", "vcf"])
def test_sfs(form: str, simtbed: Simtbed, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, serial, shared = (tmp_path / name for name in ("many.vcf", "serial", "shared"))
    write(source, variants(60 * cluster.scale))
    line = ("sfs", str(source), "--format", form, "--mode", "gama")
    monkeypatch.setattr(files_vcf, "SECTION_BYTES", 20_000)  # many batches
    message = simtbed(*line, "-o", str(serial), "--spectrum", str(tmp_path / "serial.tsv"))
    assert message.code == 0
    rows = cluster.watch(files_tsv.rows, 2)
    monkeypatch.setattr(sfs_pipeline, "rows", rows)
    again = simtbed(*line, "-o", str(shared), "--spectrum", str(tmp_path / "shared.tsv"), "--dask", cluster.address)
    assert (again.code, again.out, again.err) == (0, message.out, "")
    assert form != "tsv" or (rows.calls > 2 and rows.killed)
    assert shared.read_bytes() == serial.read_bytes()
    assert (tmp_path / "shared.tsv").read_bytes() == (tmp_path / "serial.tsv").read_bytes()


def test_simulate(simtbed: Simtbed, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = ("simulate", "--genome", "2000", "--coverage", str(50 * cluster.scale), "--length", "30-45")
    monkeypatch.setattr(simulate, "BATCH_BASES", 20_000)  # many batches
    results, show = [], cluster.watch(lambda *_: None, 3)
    for name in ("serial", "shared"):
        (tmp_path / name).mkdir()
        outputs = ["-o", str(tmp_path / name / "reads"), "--truth", str(tmp_path / name / "truth")]
        if name == "shared":
            monkeypatch.setattr(simulate, "progress_of_records", lambda *_: nullcontext(show))
            outputs += ["--dask", cluster.address]
        message = simtbed(*line, *outputs)
        assert (message.code, message.err) == (0, "")
        results.append((message.out, *((tmp_path / name / file).read_bytes() for file in ("reads", "truth"))))
    assert show.calls > 2 and show.killed
    assert results[0] == results[1]


@pytest.mark.parametrize("command", ["correct", "sfs"])
def test_json_of_a_cluster_is_refused(command: str, simtbed: Simtbed, tmp_path: Path) -> None:
    line = (command, "--example", "-o", str(tmp_path / "out"), "--json", "--dask", "local")
    assert "--dask excludes --counters, --json and --gpus" in simtbed(*line).refused()


def test_an_error_of_a_worker_is_the_serial_one(simtbed: Simtbed, cluster: Cluster, tmp_path: Path) -> None:
    source = tmp_path / "wrong.vcf"
    lines = b"".join(variants(40)).splitlines(keepends=True)
    lines[-3] = lines[-3].replace(b"\tPL\t", b"\tPL\tx", 1)
    write(source, lines)
    line = ("sfs", str(source), "-o", str(tmp_path / "out"))
    message = simtbed(*line).refused()
    assert simtbed(*line, "--dask", cluster.address).refused() == message
    assert not (tmp_path / "out").exists()


def test_options_that_a_cluster_excludes_are_refused(simtbed: Simtbed, tmp_path: Path) -> None:
    for option in (("--counters",), ("--check", "--json")):
        message = simtbed("pairhmm", "--example", "-o", str(tmp_path / "out"), "--dask", "local", *option).refused()
        assert "--dask excludes --counters, --json and --gpus" in message
    message = simtbed("pairhmm", "--example", "-o", str(tmp_path / "out"), "--dask", "nonsense").refused()
    assert "a cluster is the address of its scheduler" in message
    assert not list(tmp_path.iterdir())
