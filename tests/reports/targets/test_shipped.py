"""Shipped variants, some at a time in processes of their own: what is found is what one process finds."""

import concurrent.futures
import errno
import multiprocessing
import os
import pickle
import signal
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from simtbed import Launch, SimtbedError, UnavailableError
from simtbed.kernels import FAMILIES
from simtbed.kernels.family import Family, Launcher
from simtbed.machine.device import H200
from simtbed.reports.cli.app import run
from simtbed.reports.targets.running import run_shipped
from simtbed.reports.targets.target import Shipped
from simtbed.runtime.cores import on_cores
from simtbed.runtime.recording import Recorder

from tests.reports.sums import SUMS, Numbers

MAKE = partial(Recorder, engine="jit", device=H200, check=frozenset({"bounds", "races"}), counters=True)


def targets(family: Family[Any] = SUMS, source: Path | None = None) -> list[Shipped]:
    return [Shipped(family, variant, source) for variant in family.variants]


def killed(problem: Numbers, variant: str, launcher: Launcher) -> Numbers:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def described(launch: Launch) -> tuple[Any, ...]:
    assert launch.counts is not None
    return launch.kernel.name, launch.grid, launch.block, launch.counts.tolist(), list(map(str, launch.faults))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_can_be_pickled(name: str) -> None:
    family = pickle.loads(pickle.dumps(FAMILIES[name]))
    assert (family.name, family.variants) == (name, FAMILIES[name].variants)
    assert set(family.explained()) == set(family.variants)


@pytest.mark.slow
def test_processes_find_what_one_finds() -> None:
    result = []
    for cores in (1, 2):
        with on_cores(cores):
            result.append(list(run_shipped(targets(), MAKE)))
    first, two = ([(run.target, [described(launch) for launch in run.launches]) for run in runs] for runs in result)
    assert first == two
    assert [name for name, _ in first] == list(SUMS.variants)
    assert any(run.faults for run in result[1])


def test_a_system_without_semaphores_has_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(concurrent.futures, "ProcessPoolExecutor", refused)
    with on_cores(2):
        assert [run.target for run in run_shipped(targets(), MAKE)] == list(SUMS.variants)


@pytest.mark.slow
def test_failures_of_a_process_are_reported(tmp_path: Path) -> None:
    """A file that is not what it should be, one that is not there, a process that is killed."""
    bad = tmp_path / "bad.tsv"
    bad.write_text("ACGT\n")
    messages = []
    for cores in (1, 2):
        with on_cores(cores), pytest.raises(SimtbedError) as caught:
            list(run_shipped(targets(FAMILIES["alignment"], bad), MAKE))
        messages.append((type(caught.value), str(caught.value)))
        with on_cores(cores), pytest.raises(FileNotFoundError):
            list(run_shipped(targets(source=tmp_path / "missing"), MAKE))
    assert messages[0] == messages[1] and messages[0][1].startswith(f"{bad}:1: ")
    with on_cores(2), pytest.raises(UnavailableError, match="a worker process was killed; with SIMTBED_THREADS=1"):
        list(run_shipped(targets(replace(SUMS, solve=killed)), MAKE))


@pytest.mark.slow
def test_who_stops_early_leaves_no_process() -> None:
    before = set(multiprocessing.active_children())
    with on_cores(2), closing(run_shipped(targets(), MAKE)) as runs:
        assert next(runs).target == next(iter(SUMS.variants))
    assert set(multiprocessing.active_children()) == before


@pytest.mark.slow
def test_check_takes_the_cores_that_it_is_given(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FAMILIES, "sums", SUMS)
    printed = []
    for cores in ("1", "2"):
        monkeypatch.setenv("SIMTBED_THREADS", cores)
        assert run(["check", "--family", "sums", "--json"]) == 1
        printed.append(capsys.readouterr())
    assert printed[0] == printed[1]
