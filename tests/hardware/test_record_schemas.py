"""Records with a wrong value at any place: each is refused with one line, or read."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from simtbed import SimtbedError
from simtbed.compiled.pipes import PIPES
from simtbed.reports.hardware import errors, record
from simtbed.reports.hardware.figures import FIGURES
from simtbed.reports.papers import measured
from simtbed.testing import answers
from simtbed.testing.budgets import Baselines
from simtbed.testing.known_findings import read_file

from tests.profiler.test_run_file import changed_at, trials
from tests.table_checks import check_each

KERNEL = {
    "kernel": "k", "source": "00", "launches": 1, "registers": 9, "shared_bytes": 0, "sass": ["0000 3,4 4 128 MOV R1, R2"],
    "figures": {figure.name: 0.5 for figure in FIGURES}, "pipes": dict.fromkeys(PIPES, 1),
}  # fmt: skip
ANSWER = {"sources": ["00"], "output": "00", "launches": 1, "milliseconds": 0.1, "registers": 9, "rounding": 0.0}
OPERATIONS = {"a": {"sources": ["00"], "rows": {"not": {"output": "00"}, "exp": {"policy": "ulp", "ulp": 2}}}}
RECORD = {
    **dict.fromkeys(("device", "gpu", "arch", "driver", "toolkit", "profiler", "dated"), "text"),
    "counters": {"a": [KERNEL]}, "answers": {"a": ANSWER}, "operations": OPERATIONS, "waiting": ["a"],
}  # fmt: skip
TRAFFIC = {"l1_hit": 0.5, "l2_hit": 0.5, "dram_bytes": 8.0, "metrics": {"m": 1.0}}
TIMES = {
    "device": "H200", "clocks": ["c"], "dated": "d", "empty_us": 2.5, "failed": {"b": "why"},
    "launches": {"a": {"warm_us": 5.5, "cold_us": 6.5, "registers": 9, "source": "00", **TRAFFIC, "cold": TRAFFIC}},
}  # fmt: skip
PAPER = {
    "paper": "p", "timings": {"GPU": {"a": {"milliseconds": 1.5, "work": 2, "machine": "m", "dated": "2026-01-01"}}},
}  # fmt: skip
LINE = {"function": "k", "line": 1, "source": "x = 1", "warp_instructions": 7}
BASELINES = {"t": {"k": {
    "device": "H200", "rules": 4, "lines": [LINE], "figures": {"launches": 1, "occupancy": 50.0, "shared_bytes": 0},
}}}  # fmt: skip
PINS = {"known": [{"kind": "race", "file": "a.py", "line": "x = 1", "reason": "known"}]}
LAUNCHES = {"format": "simtbed launches", "version": 1, "tests": {"t": {"jit": ["k: rounds"]}}}
FORMATS: dict[str, tuple[Callable[[Path], Any], Any, Callable[[Any], str]]] = {
    "record": (record.load, RECORD, json.dumps),
    "times": (errors.load, TIMES, json.dumps),
    "paper": (measured.load, PAPER, json.dumps),
    "launches": (answers.read, LAUNCHES, json.dumps),
    "baselines": (Baselines.read, BASELINES, tomli_w.dumps),
    "known findings": (read_file, PINS, tomli_w.dumps),
}
"""Reader, valid content and writer of each format."""


def check_refused(name: str, chosen: Sequence[tuple[tuple[Any, ...], Any]], path: Path) -> None:
    """Check that files with odd values are refused with one line, most of them, or read."""
    read, content, write = FORMATS[name]
    path.write_text(write(content))
    read(path)
    refused = []

    def check(trial: tuple[tuple[Any, ...], Any]) -> None:
        try:
            path.write_text(write(changed_at(content, *trial)))
        except (TypeError, UnicodeEncodeError):
            return  # the format has no such value
        with suppress(SimtbedError):
            read(path)
            return
        with pytest.raises(SimtbedError) as caught:
            read(path)
        refused.append(trial)
        text = str(caught.value)
        assert text.startswith(f"{path}: ") and "\n" not in text and len(text) < 500, text

    check_each(chosen, check)
    assert len(refused) > len(chosen) // 2


@pytest.mark.parametrize("name", FORMATS)
def test_a_wrong_value_is_refused_with_one_line(name: str, tmp_path: Path) -> None:
    chosen = trials(FORMATS[name][1])
    check_refused(name, chosen[:: max(1, len(chosen) // 15)], tmp_path / "file")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"[" * 100_000, b'{"a":' * 100_000, b"a = " + b"[" * 100_000, b"1" * 9999]
)
def test_other_content_is_refused_with_one_line(name: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    if name in ("baselines", "known findings") and not data:
        return  # an empty TOML file has none
    with pytest.raises(SimtbedError) as caught:
        FORMATS[name][0](path)
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)
