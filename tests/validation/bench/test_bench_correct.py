"""`simtbed bench correct`: times of the spectrum and of each variant, on an emulator."""

from typing import Any

import pytest
from simtbed import Kernel, Result
from simtbed.kernels.correction import FAMILY
from simtbed.kernels.correction.host.generate import genome, simulate
from simtbed.reports import launchers
from simtbed.reports.bench import correct
from simtbed.reports.launchers import Runner

from tests.reports.conftest import Simtbed


def test_a_measurement_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an emulator, whose launches are said to take a millisecond each."""

    class Timed(Runner):
        def launch(self, kernel: Kernel, **arguments: Any) -> Result:
            result = super().launch(kernel, **arguments)
            self.milliseconds = (self.milliseconds or 0) + 1
            return result

    monkeypatch.setattr(correct, "FILTERS", ("exact",))
    measured = correct.measure(simulate(1, genome(1, 3000), 400, (36, 36), 0.01).reads, 2, lambda _: Timed("jit"))
    rows = {row["variant"]: row for row in measured["correction"]}
    assert list(rows) == list(FAMILY.variants)
    assert len({row["kept"] for row in rows.values()}) == 1
    assert [rows[variant]["milliseconds"] for variant in ("warp-per-read", "packed")] == [1, 3]
    assert measured["spectrum"]["milliseconds"] == 3
    lines = correct.text(measured).splitlines()
    kept = str(rows["packed"]["kept"])
    assert lines[2].split() == ["thread-per-read", "exact", "0.4", "1.00", "(1.00-1.00)", "1.00", kept]
    assert lines[-1].startswith("spectrum: 0.1 million reads/s counted; ")


def test_measuring_needs_a_gpu(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchers, "why_unavailable", lambda engine: f"no {engine} here")
    assert "the cuda engine cannot run here: no cuda here" in simtbed("bench", "correct", "--engine", "cuda").refused(3)
    assert (
        "0 is not in the range 1<=x<=1000" in simtbed("bench", "correct", "--engine", "cuda", "--repeat", "0").refused()
    )


@pytest.mark.parametrize(("subject", "paper"), [("sfs", "lu2012"), ("correct", "mangal2014")])
def test_emulators_have_no_times(subject: str, paper: str, simtbed: Simtbed) -> None:
    refused = simtbed("bench", subject).refused(3)
    assert f"bench {subject} measures times on a GPU" in refused and f"simtbed report {paper}" in refused
