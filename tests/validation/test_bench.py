"""`simtbed bench` with other emulators: its rows and the order of its measurements."""

from __future__ import annotations

import json

import pytest
from simtbed.reports.bench import emulation as benchmark
from simtbed.reports.bench import oclgrind
from simtbed.reports.bench.kernels import Size, works

TINY = Size(4, 2, 32)
GENERAL = ["transpose, pitch 33", "transpose, pitch 32", "block sum"]
NAMES = ["intertask-naive", "wavefront-loaded", *GENERAL]


def test_peers_are_compared(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(benchmark, "STARTS", 1)
    monkeypatch.setattr(benchmark, "SAMPLE", 0.001)
    monkeypatch.setattr(benchmark, "works", lambda size: [work for work in works(size) if work.name in NAMES])
    monkeypatch.setattr(benchmark, "SMALL", TINY)
    monkeypatch.setattr(benchmark, "COMPILED_PEER", Size(4, 2, 256))
    assert benchmark.bench(2, True, True, TINY) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["work"] for row in content["throughput"]] == NAMES == [row["work"] for row in content["starts"]]
    peers = ["CUDASIM", "Oclgrind"] if oclgrind.installed() else ["CUDASIM"]
    expected = [(peer, name) for peer in peers for name in ("intertask-naive", *GENERAL)]
    assert [(row["peer"], row["work"]) for row in content["peers"]] == expected
    for row in (*content["throughput"], *content["peers"]):
        for value in row.values():
            if isinstance(value, dict):
                assert 0 < value["least"] <= value["median"] <= value["most"]
