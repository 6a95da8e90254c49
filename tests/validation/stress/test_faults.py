"""Disk, memory and signals fail at every point of every file command: nothing under a final name changes."""

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from simtbed.kernels.files import Stopped, decompression, outputs, temporary_files
from simtbed.reports import launchers

from tests.hostile.formats import FORMATS, Format
from tests.hostile.trial import BEFORE, command

NAMES = ("fastq", "reference", "pairhmm", "table", "alternates", "beagle", "vcf", "sites of bcf", "npz")
EXTRA = {"beagle": ("--mode", "saf"), "reference": ("--truth", "{second}"), "fastq": ("--discarded", "{third}")}
CASES = [form for form in FORMATS if form.name in NAMES]
FAULTS: dict[str, tuple[Callable[[], BaseException], int]] = {
    "full disk": (lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), 3),
    "read-only folder": (lambda: OSError(errno.EROFS, os.strerror(errno.EROFS)), 2),
    "no memory": (MemoryError, 3),
    "SIGTERM": (lambda: Stopped(signal.SIGTERM), 143),
    "Ctrl-C": (KeyboardInterrupt, 130),
}


class Point:
    """Counts what passes it; the chosen one fails."""

    def __init__(self, chosen: int, error: Callable[[], BaseException]) -> None:
        self.chosen, self.error, self.passed = chosen, error, 0

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **how: Any) -> Any:
            self.passed += 1
            if self.passed == self.chosen:
                raise self.error()
            return function(*arguments, **how)

        return call


class FailingSystem:
    """The module os as the file access layer imports it; the calls that change a disk pass a point."""

    def __init__(self, point: Point) -> None:
        for name in ("open", "write", "fsync", "link", "replace", "dup"):
            setattr(self, name, point.wrapped(getattr(os, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def places(form: Format, folder: Path) -> tuple[list[str], list[Path]]:
    """The command line, and its outputs, with something under each name."""
    named = {"{}": folder / "given", "{other}": folder / "other"}
    named |= {mark: folder / mark.strip("{}") for mark in ("{out}", "{second}", "{third}")}
    words = [*form.command, *EXTRA.get(form.name, ())]
    targets = [path for mark, path in named.items() if mark in words and mark not in ("{}", "{other}")]
    if "--spectrum" in words:
        targets.append(folder / "second.svg")
    named["{}"].write_bytes(form.wrap(form.good[0]))
    named["{other}"].write_bytes(form.other)
    for path in targets:
        path.write_bytes(BEFORE)
    return [str(named.get(word, word)) for word in words], targets


def put(monkeypatch: pytest.MonkeyPatch, at: str, point: Point) -> None:
    """Let reads, writes or launches pass the point."""
    if at == "writes":
        for module in (outputs, temporary_files):
            monkeypatch.setattr(module, "os", FailingSystem(point))
    elif at == "reads":
        monkeypatch.setattr(
            decompression.DecompressedFile, "readinto", point.wrapped(decompression.DecompressedFile.readinto)
        )
    else:
        monkeypatch.setattr(launchers.Runner, "launch", point.wrapped(launchers.Runner.launch))


@pytest.mark.parametrize("form", CASES, ids=[form.name for form in CASES])
@pytest.mark.parametrize(
    ("at", "fault"),
    [
        *(("writes", fault) for fault in FAULTS),
        *((at, fault) for at in ("reads", "launches") for fault in [*FAULTS][2:]),
    ],
)
def test_nothing_changes(at: str, fault: str, form: Format, tmp_path: Path) -> None:
    error, expected = FAULTS[fault]
    words, targets = places(form, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    failed = 0
    for chosen in range(1, 100):
        point = Point(chosen, error)
        with pytest.MonkeyPatch.context() as monkeypatch:
            put(monkeypatch, at, point)
            code, printed, message = command(words)
        if code == 0:
            assert all(path.read_bytes() != BEFORE for path in targets)
            for path in targets:
                path.write_bytes(BEFORE)
            if point.passed < chosen:
                break
            continue  # of what need not succeed, such as a folder that cannot be synchronised
        failed += 1
        assert (code, printed) == (expected, b"")
        assert message.count("\n") == (0 if expected > 128 else 1)
        assert [path.name for path in targets if path.read_bytes() != BEFORE] == []
        assert {path.name for path in tmp_path.iterdir()} == names
    else:
        pytest.fail("more points than were tried")
    assert failed or (at == "launches" and form.name == "reference")
