"""What a new array holds before a kernel writes it decides nothing, unless the launch asks for zeros."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from simtbed import DeviceArray, Kernel, Result, launch
from simtbed.kernels import FAMILIES, FunctionLauncher
from simtbed.runtime.arrays import NewArray

VARIANTS = [(family, variant) for family in FAMILIES for variant in FAMILIES[family].variants]


def garbage(given: Any) -> Any:
    """An array that is full of something in place of an `empty` one; anything else as it is."""
    if not isinstance(given, NewArray) or given.readable:
        return given
    found: npt.NDArray[Any] = given.made()
    found.view(np.uint8).reshape(-1)[:] = 0xA5
    return found


@FunctionLauncher
def on_garbage(kernel: Kernel, **arguments: Any) -> Result:
    args = {name: garbage(given) for name, given in arguments["args"].items()}
    return launch(kernel, counters=False, **{**arguments, "args": args})


@pytest.mark.parametrize(("family", "variant"), VARIANTS)
def test_no_variant_reads_what_nobody_wrote(family: str, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = FAMILIES[family]
    problem = row.example()
    expected = row.solve(problem, variant, FunctionLauncher(partial(launch, counters=False)))
    made = DeviceArray.__init__
    monkeypatch.setattr(DeviceArray, "__init__", lambda self, contents: made(self, garbage(contents)))
    np.testing.assert_array_equal(row.solve(problem, variant, on_garbage), expected)
