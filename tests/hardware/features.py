"""Kernels to compare with a GPU besides the variants: every feature of the language, and what `simtbed bench` adds.

`simtbed hardware compare --cases tests.hardware.features:cases`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from simtbed import Result, empty
from simtbed.kernels import Launcher
from simtbed.reports.bench.kernels import block_sum, transpose
from simtbed.reports.hardware.cases import Case, variants
from simtbed.testing.conformance import FEATURES, Feature

SIDE = 256


def cases() -> Iterator[Case]:
    """One case a feature; the transpose with and without bank conflicts; the reduction."""
    for feature in FEATURES:
        yield Case(feature.name, partial(_feature, feature))
    x = np.arange(SIDE * SIDE, dtype=np.float32)
    tiles = (SIDE // 32, SIDE // 32)
    for pitch in (33, 32):
        args: dict[str, Any] = {"x": x, "out": empty(len(x), "f32"), "width": SIDE, "PITCH": pitch}
        yield Case(f"transpose, pitch {pitch}", partial(_launch, transpose, tiles, (32, 8), args))
    args = {"x": x, "out": empty(SIDE, "f32"), "BLOCK": 256}
    yield Case("block sum", partial(_launch, block_sum, SIDE, 256, args))


def few() -> Iterator[Case]:
    """Two of the shipped variants, for tests that need but some."""
    return (case for case in variants() if case.name in ("pairhmm intertask-naive", "pairhmm wavefront"))


def _feature(feature: Feature, launcher: Launcher) -> Result:
    result: Result = feature.launch(launcher.launch)
    return result


def _launch(kernel: Any, grid: Any, block: Any, args: dict[str, Any], launcher: Launcher) -> Result:
    return launcher.launch(kernel, grid=grid, block=block, args=args)
