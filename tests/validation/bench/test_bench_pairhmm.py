"""`simtbed bench pairhmm` on the emulator: every row is there, and the paper's counts are in it."""

import json

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, i32
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import equal_lengths
from simtbed.reports.bench import pairhmm
from simtbed.runtime.engine import Request

from tests.reports import fake_gpu
from tests.reports.conftest import Simtbed


def test_rens_sets_are_the_papers() -> None:
    assert list(pairhmm.INTERTASK_SETS) == [1, 2, 3, 4, 5, 6]
    assert pairhmm.INTERTASK_SETS[6] == (144, 144)
    sets = pairhmm.INTRATASK_SETS
    assert len(sets) == 26
    assert (sets[1], sets[9], sets[16], sets[22], sets[26]) == ((32, 32), (64, 64), (96, 96), (128, 128), (128, 256))


def test_every_variant_is_counted(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairhmm, "INTERTASK_SETS", {1: (24, 24)})
    monkeypatch.setattr(pairhmm, "INTRATASK_SETS", {1: (32, 32)})
    monkeypatch.setattr(pairhmm, "LENGTHS", (32, 48))
    result = simtbed("bench", "pairhmm", "--pairs", "8", "--json")
    assert result.code == 0
    content = json.loads(result.out)
    assert {row["variant"] for row in content["Ren 2018"]} == set(FAMILY.variants)
    assert [(row["length"], row["variant"]) for row in content["lengths"]] == [
        (length, variant) for length in (32, 48) for variant in ("wavefront-loaded", "wavefront-rescaled")
    ]
    by_variant = {row["variant"]: row for row in content["Ren 2018"]}
    assert by_variant["intratask-warp"]["barriers per pair"] == 0 < by_variant["intratask-naive"]["barriers per pair"]
    naive, tiled = (by_variant[f"intertask-{name}"]["global bytes per cell"] for name in ("naive", "tile8"))
    assert naive > 3 * tiled


def test_only_selected_sections_are_measured(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairhmm, "LENGTHS", (32,))
    result = simtbed(
        "bench", "pairhmm", "--pairs", "8", "--repeat", "1", "--only", "lengths", "--only", "files", "--json"
    )
    assert result.code == 0
    content = json.loads(result.out)
    assert list(content) == ["lengths", "files"]
    (row,) = content["files"]
    assert row["pairs"] == len(FAMILY.example().pairs[0])
    assert row["MB in"] > 0 < row["MB out"]


def test_what_is_measured_is_the_float_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The double kernel, needed by most pairs of long random sequences, is not timed."""
    timed = []

    class Engine:
        def time(self, request: Request, repeats: int) -> list[float]:
            timed.append(request.arguments["sums"].dtype)
            return [3.0, 2.0, 100.0][:repeats]

    timer = pairhmm.Timer(3, engine=Engine())  # type: ignore[arg-type]
    FAMILY.solve(equal_lengths(1, 25, 512, 512), "wavefront-loaded", timer)
    assert timed == [np.float32]
    assert timer.milliseconds == 3.0


@st.kernel
def _tickets(count: Global[i32], order: Global[i32]) -> None:
    """Each thread takes a number: launched again, they would lead out of the array."""
    order[st.atomic_add(count, 0, 1)] = st.thread.x


def test_what_counts_in_memory_is_launched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_gpu.install(monkeypatch)
    timer = pairhmm.Timer(3)
    result = timer.launch(_tickets, grid=1, block=32, args={"count": st.zeros(1, "i32"), "order": st.zeros(32, "i32")})
    assert sorted(result["order"].tolist()) == list(range(32))
    assert timer.milliseconds == 1.0


def test_bytes_copied_to_the_gpu_are_counted_once() -> None:
    problem, prepared = FAMILY.example(), pairhmm.Prepared(np.copy)
    FAMILY.solve(problem, "wavefront-rescaled", prepared)
    to_gpu, from_gpu = prepared.nbytes
    assert from_gpu == 4 * len(problem.pairs[0])
    (request,) = prepared.requests
    sizes = {name: np.asarray(a).nbytes for name, a in request.arguments.items() if np.ndim(a) and name != "sums"}
    assert to_gpu == sum(sizes.values()) > 5 * len(problem.bases)
