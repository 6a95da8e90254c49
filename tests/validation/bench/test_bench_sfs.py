"""`simtbed bench sfs` on a GPU: derived values, with a launcher that reports one millisecond per launch."""

import json
from typing import Any

import pytest
from simtbed import Kernel, Result, devices
from simtbed.kernels import FAMILIES
from simtbed.reports import launchers
from simtbed.reports.bench import sfs
from simtbed.reports.launchers import Runner

from tests.reports.conftest import Simtbed


class Timed(Runner):
    """Launches on the numpy engine."""

    def __init__(self, engine: str) -> None:
        assert engine == "cuda"
        super().__init__("numpy")

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        result = super().launch(kernel, **arguments)
        self.milliseconds = (self.milliseconds or 0.0) + 1.0
        return result


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchers, "Runner", Timed)
    monkeypatch.setattr(launchers, "why_unavailable", lambda engine: None)
    monkeypatch.setattr(sfs, "BYTES", 24 * 16 * 40)
    monkeypatch.setattr(sfs, "SIZES", (4, 16))
    monkeypatch.setattr(sfs, "OTHERS_AT", 16)
    monkeypatch.setattr(sfs, "LOOP_PRODUCTS", 1 << 12)


def test_what_follows_from_the_times(gpu: None) -> None:
    """reduction at 16 individuals is four levels and the normalisation: 5 ms for 40 sites."""
    row = sfs.measured("reduction", 16, 3)
    assert (row["sites"], row["milliseconds"]) == (40, 5.0)
    assert row["sites_a_second"]["median"] == pytest.approx(8000)
    assert row["fma_a_second"] == pytest.approx(2 * 16**2 * 8000)
    assert row["share_of_peak"] == pytest.approx(2 * 16**2 * 8000 / (132 * 64 * devices.H200.clock * 1e6))


def test_the_rows(gpu: None, simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sfs, "BYTES", 24 * 16 * 4)
    result = simtbed("bench", "sfs", "--engine", "cuda", "--repeat", "1", "--json")
    rows = json.loads(result.out)["rows"]
    few, many = ([row["variant"] for row in rows if row["individuals"] == n] for n in (4, 16))
    assert few == ["tiled", "reduction-shared-scaled", "plain loop"]
    assert set(many[:2]) == set(few[:2]) and set(many) == {*FAMILIES["sfs"].variants, "plain loop"}
    monkeypatch.setattr(sfs, "SIZES", (4,))
    assert "fraction of H200 peak" in simtbed("bench", "sfs", "--engine", "cuda", "--repeat", "1").out


def test_bad_use(simtbed: Simtbed) -> None:
    assert "0 is not in the range 1<=x<=1000" in simtbed("bench", "sfs", "--repeat", "0").refused()
