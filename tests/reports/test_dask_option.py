"""`--dask`: the same file as a serial run's, also where a worker is killed in the middle."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from distributed import Client
from simtbed.cluster import connected
from simtbed.kernels.alignment.host import files as align_files
from simtbed.kernels.alignment.host import pipeline_files
from simtbed.kernels.files import contents
from simtbed.kernels.pairhmm.host import files
from simtbed.kernels.pipeline import Flow
from simtbed.reports.bench.files_made import aligned_pairs
from simtbed.reports.cli import pairhmm

from tests.reports.conftest import Simtbed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Of a real cluster of worker processes."""
    with connected("local") as found:
        yield found


def doubled(n: int) -> int:
    return 2 * n


def failing(n: int) -> int:
    if n == 3:
        raise ValueError("no 3")
    return n


def test_a_stage_over_a_cluster_keeps_order_and_errors(client: Client) -> None:
    address = client.scheduler_info()["address"]
    assert list(Flow(range(20)).over_cluster(doubled, address).each(doubled)) == [4 * n for n in range(20)]
    taken: list[int] = []
    with pytest.raises(ValueError, match="no 3"):
        Flow(range(20)).over_cluster(failing, address).into(taken.append)
    assert taken == [0, 1, 2]


def test_pairhmm_survives_a_killed_worker(
    simtbed: Simtbed, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, serial, shared = (tmp_path / name for name in ("pairs.in", "serial", "shared"))
    given.write_bytes(contents(files.EXAMPLE) * 20)
    assert simtbed("pairhmm", str(given), "-o", str(serial)).code == 0
    monkeypatch.setattr(files, "BLOCK", len(contents(files.EXAMPLE)))  # many blocks
    calls, killed, lines = 0, -1, files.lines

    def killing(*given: Any) -> Iterator[bytes]:
        nonlocal calls, killed
        calls += 1
        if calls == 3:
            killed = next(iter(client.run(os.getpid).values()))
            os.kill(killed, signal.SIGKILL)
        return lines(*given)

    monkeypatch.setattr(pairhmm, "lines", killing)
    ran = simtbed("pairhmm", str(given), "-o", str(shared), "--check", "--dask", client.scheduler_info()["address"])
    assert ran.code == 0 and "and the oracle agree" in ran.out
    assert calls > 10 and killed > 0
    assert shared.read_bytes() == serial.read_bytes()


@pytest.mark.parametrize("form", ["tsv", "sam"])
def test_align_survives_a_killed_worker(
    form: str, simtbed: Simtbed, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, serial, shared = (tmp_path / name for name in ("pairs.tsv", "serial", "shared"))
    given.write_bytes(b"".join(islice(aligned_pairs(), 300)))
    line = ("align", str(given), "--format", form, "--max-memory", "64M")
    assert simtbed(*line, "-o", str(serial)).code == 0
    calls, killed, texts = 0, -1, align_files.texts

    def killing(*given: Any) -> Any:
        nonlocal calls, killed
        calls += 1
        if calls == 2:
            killed = next(iter(client.run(os.getpid).values()))
            os.kill(killed, signal.SIGKILL)
        return texts(*given)

    monkeypatch.setattr(pipeline_files, "texts", killing)
    ran = simtbed(*line, "-o", str(shared), "--dask", client.scheduler_info()["address"])
    assert (ran.code, ran.err) == (0, "")
    assert calls > 5 and killed > 0
    assert shared.read_bytes() == serial.read_bytes()


def test_what_does_not_go_with_a_cluster_is_refused(simtbed: Simtbed, tmp_path: Path) -> None:
    for option in (("--counters",), ("--check", "--json")):
        told = simtbed("pairhmm", "--example", "-o", str(tmp_path / "out"), "--dask", "local", *option).refused()
        assert "--dask goes without --counters, --json and --gpus" in told
    told = simtbed("pairhmm", "--example", "-o", str(tmp_path / "out"), "--dask", "nonsense").refused()
    assert "a cluster is the address of its scheduler" in told
    assert not list(tmp_path.iterdir())
