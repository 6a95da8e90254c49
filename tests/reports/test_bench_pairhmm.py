"""`simtbed bench pairhmm` on the emulator: every row is there, and the paper's counts are in it."""

from __future__ import annotations

import json

import pytest
from simtbed.kernels.pairhmm import FAMILY
from simtbed.reports import bench_pairhmm

from tests.reports.conftest import Simtbed


def test_rens_sets_are_the_papers() -> None:
    assert list(bench_pairhmm.INTERTASK_SETS) == [1, 2, 3, 4, 5, 6]
    assert bench_pairhmm.INTERTASK_SETS[6] == (144, 144)
    sets = bench_pairhmm.INTRATASK_SETS
    assert len(sets) == 26
    assert (sets[1], sets[9], sets[16], sets[22], sets[26]) == ((32, 32), (64, 64), (96, 96), (128, 128), (128, 256))


def test_every_variant_is_counted(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_pairhmm, "INTERTASK_SETS", {1: (24, 24)})
    monkeypatch.setattr(bench_pairhmm, "INTRATASK_SETS", {1: (32, 32)})
    monkeypatch.setattr(bench_pairhmm, "LENGTHS", (32, 48))
    ran = simtbed("bench", "pairhmm", "--pairs", "8", "--json")
    assert ran.code == 0
    content = json.loads(ran.out)
    assert {row["variant"] for row in content["Ren 2018"]} == set(FAMILY.variants)
    assert [(row["length"], row["variant"]) for row in content["lengths"]] == [
        (length, variant) for length in (32, 48) for variant in ("wavefront", "wavefront-rescaled")
    ]
    by_variant = {row["variant"]: row for row in content["Ren 2018"]}
    assert by_variant["intratask-warp"]["barriers a pair"] == 0 < by_variant["intratask-naive"]["barriers a pair"]
    naive, tiled = (by_variant[f"intertask-{name}"]["global bytes a cell"] for name in ("naive", "tile8"))
    assert naive > 3 * tiled
