"""Uninitialised memory of GPU and host does not affect results, except for requested zeros."""

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
    """Fill the array with nonzero bytes."""
    if not array.dtype.hasobject:
        array.reshape(-1).view(np.uint8)[:] = np.frombuffer(
            DRAW.randbytes(array.nbytes).replace(b"\0", b"\1"), np.uint8
        )
    return array


def of_garbage(argument: Any) -> Any:
    """Return an array of garbage in place of an `empty` one; other values unchanged."""
    return garbage(argument.initial()) if isinstance(argument, NewArray) and not argument.readable else argument


class OnGarbage(Launcher):
    """Kernels find garbage in uninitialised arrays."""

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        args = {name: of_garbage(argument) for name, argument in arguments["args"].items()}
        return launch(kernel, counters=False, **{**arguments, "args": args})


@pytest.fixture
def garbage_launcher(monkeypatch: pytest.MonkeyPatch) -> OnGarbage:
    """Return a launcher; uninitialised memory of the host and of device arrays is garbage."""
    original = DeviceArray.__init__
    monkeypatch.setattr(DeviceArray, "__init__", lambda self, contents: original(self, of_garbage(contents)))
    monkeypatch.setattr(np, "empty", lambda *argument, **how: garbage(EMPTY(*argument, **how)))
    return OnGarbage()


@pytest.mark.parametrize(("family", "variant"), VARIANTS)
def test_no_variant_reads_unwritten_memory(family: str, variant: str, request: pytest.FixtureRequest) -> None:
    row = FAMILIES[family]
    problem = row.example()
    expected = row.solve(problem, variant, PLAIN)
    np.testing.assert_array_equal(row.solve(problem, variant, request.getfixturevalue("garbage_launcher")), expected)


@pytest.mark.parametrize("variant", ALIGNMENT)
def test_moves_of_many_batches_and_shapes(variant: str, request: pytest.FixtureRequest) -> None:
    """Pairs of a matrix's edge, of one base, and of all block sizes, a few at a time; with `passes`, several passes each."""
    problems = [
        generate(1, 12, (1, 9), (1, 9)),
        generate(2, 12, (5, 150), (5, 150)),
        generate(3, 3, (20, 40), (150, 420)),
    ]
    problem = problems[0].from_pairs(pair for part in problems for pair in part.pairs())
    expected = FAMILIES["alignment"].oracle(problem).tolist()
    garbage_launcher = request.getfixturevalue("garbage_launcher")  # after the compilation of the oracle
    for words in (1 << 14, 1 << 18):
        assert pipeline.solve(problem, variant, garbage_launcher, words=words).tolist() == expected
