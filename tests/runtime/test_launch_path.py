"""The path of a warm launch through the package: the files it passes, and its steps back up the layers."""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, f32, i32, launch

from tests.gpu.launches import in_threads
from tests.test_architecture import ALLOWED, ROOT, _module, _package

INSTALLED = Path(st.__file__).parent


@st.kernel
def scaled(x: Global[f32], out: Global[f32], a: f32, n: i32) -> None:
    i = st.thread.x
    if i < n:
        out[i] = a * x[i]


@cache
def _below(package: str) -> frozenset[str]:
    """Return the packages that a package may import, and theirs."""
    lower = ALLOWED[package]
    return frozenset(lower).union(*map(_below, lower))


def _package_of(frame: FrameType | None) -> str | None:
    """Return the package of a frame's code; None outside of the folder `emulator`, also where it is installed."""
    path = None if frame is None else Path(frame.f_code.co_filename)
    if path is None or not path.is_relative_to(INSTALLED):
        return None
    source = ROOT / "emulator" / path.relative_to(INSTALLED)
    return _package(_module(source)) if source.exists() else None


def path_of(work: Callable[[], object], last: str) -> tuple[set[str], int]:
    """Return the files with a frame until the function `last` of an engine begins, and the calls from a package to one above it."""
    files, climbs, ended = set[str](), 0, False

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal climbs, ended
        called = _package_of(frame)
        if event != "call" or called is None or ended:
            return
        files.add(frame.f_code.co_filename)
        caller = _package_of(frame.f_back)
        climbs += caller is not None and caller in _below(called)
        ended = called == "engines" and frame.f_code.co_name == last

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    assert ended
    return files, climbs


def test_a_warm_launch_passes_few_files() -> None:
    x = np.ones(256, np.float32)
    args: dict[str, Any] = {"x": x, "out": np.zeros(256, np.float32), "a": 2.0, "n": 256}
    for engine in ("jit", "numpy"):

        def work(engine: Any = engine) -> None:
            launch(scaled, grid=1, block=256, args=args, engine=engine)

        work()
        files, climbs = path_of(work, "run")
        assert len(files) <= 14 and climbs <= 3, (sorted(files), climbs)


@pytest.mark.slow
def test_launches_of_eight_threads() -> None:
    assert in_threads("jit", 8, 40) == []
