"""What memory holds before it is written decides nothing, unless zeros are asked for: neither that of a GPU nor a host's."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from simtbed import DeviceArray, Kernel, Result, launch
from simtbed.kernels import FAMILIES, FunctionLauncher, Launcher
from simtbed.kernels.alignment.host import pipeline
from simtbed.kernels.alignment.host.generate import generate
from simtbed.runtime.arrays import NewArray

VARIANTS = [(family, variant) for family in FAMILIES for variant in FAMILIES[family].variants]
ALIGNMENT = list(FAMILIES["alignment"].variants)
PLAIN = FunctionLauncher(partial(launch, counters=False))
DRAW = Random(7)
EMPTY = np.empty


def garbage(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, full of bytes that are not zero."""
    if not array.dtype.hasobject:
        array.reshape(-1).view(np.uint8)[:] = np.frombuffer(
            DRAW.randbytes(array.nbytes).replace(b"\0", b"\1"), np.uint8
        )
    return array


def of_garbage(given: Any) -> Any:
    """An array full of garbage in place of an `empty` one; anything else as it is."""
    return garbage(given.initial()) if isinstance(given, NewArray) and not given.readable else given


class OnGarbage(Launcher):
    """Kernels find garbage where they were promised nothing."""

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        args = {name: of_garbage(given) for name, given in arguments["args"].items()}
        return launch(kernel, counters=False, **{**arguments, "args": args})


@pytest.fixture
def littered(monkeypatch: pytest.MonkeyPatch) -> OnGarbage:
    """A launcher, and memory of the host and of arrays that stay, all full of garbage."""
    made = DeviceArray.__init__
    monkeypatch.setattr(DeviceArray, "__init__", lambda self, contents: made(self, of_garbage(contents)))
    monkeypatch.setattr(np, "empty", lambda *given, **how: garbage(EMPTY(*given, **how)))
    return OnGarbage()


@pytest.mark.parametrize(("family", "variant"), VARIANTS)
def test_no_variant_reads_what_nobody_wrote(family: str, variant: str, request: pytest.FixtureRequest) -> None:
    row = FAMILIES[family]
    problem = row.example()
    expected = row.solve(problem, variant, PLAIN)
    np.testing.assert_array_equal(row.solve(problem, variant, request.getfixturevalue("littered")), expected)


@pytest.mark.parametrize("variant", ALIGNMENT)
def test_moves_of_many_batches_and_shapes(variant: str, request: pytest.FixtureRequest) -> None:
    """Pairs of a matrix's edge, of one base, and of all block sizes, a few at a time; with `passes`, several passes each."""
    parts = [generate(1, 12, (1, 9), (1, 9)), generate(2, 12, (5, 150), (5, 150)), generate(3, 3, (20, 40), (150, 420))]
    problem = parts[0].of(pair for part in parts for pair in part.pairs())
    expected = FAMILIES["alignment"].oracle(problem).tolist()
    littered = request.getfixturevalue("littered")  # not before the oracle is compiled
    for words in (1 << 14, 1 << 18):
        assert pipeline.solve(problem, variant, littered, words=words).tolist() == expected
