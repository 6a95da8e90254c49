"""Generated kernels: the numpy engine and the passes mean what the python engine means."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, note
from simtbed import launch
from simtbed.ir.ops import BITS
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance.outcomes import engine_of
from simtbed.testing.source_text import kernel_from_source
from simtbed.testing.strategies import Generated, kernels


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generated")


def _same(actual: Mapping[str, npt.NDArray[Any]], expected: dict[str, npt.NDArray[Any]]) -> None:
    for name, values in actual.items():
        differing = np.flatnonzero(~BITS.agree(values, expected[name]))
        assert not len(differing), (
            f"{name}[{differing[0]}]: {values[differing[0]]}, one thread at a time {expected[name][differing[0]]}"
        )


@pytest.mark.slow
@given(kernels())
def test_the_numpy_engine_agrees_with_one_thread_at_a_time(folder: Path, generated: Generated) -> None:
    note(generated.source)
    kernel, args = kernel_from_source(generated.source, folder), generated.arguments()
    request = prepare_request(kernel, grid=generated.grid, block=generated.block, args=args, step_limit=1000)
    expected = engine_of("python").run(request).buffers
    result = launch(kernel, grid=generated.grid, block=generated.block, args=args, step_limit=1000, engine="numpy")
    assert {"out_i32", "out_f64", "out_bool"} <= set(result.buffers)
    _same(result.buffers, expected)
