"""Generated kernels: the engines give the same outputs, counts and faults."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, note
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.ir.ops import BITS
from simtbed.runtime.engine import Request
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance import assert_same
from simtbed.testing.conformance.outcomes import engine_of
from simtbed.testing.source_text import kernel_from_source
from simtbed.testing.strategies import Generated, kernels


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generated")


def _request(generated: Generated, folder: Path) -> Request:
    note(generated.source)
    kernel, args = kernel_from_source(generated.source, folder), generated.arguments()
    return prepare_request(kernel, grid=generated.grid, block=generated.block, args=args, step_limit=1000)


@pytest.mark.slow
@given(kernels())
def test_the_numpy_engine_agrees_with_one_thread_at_a_time(folder: Path, generated: Generated) -> None:
    request = _request(generated, folder)
    actual, expected = NumpyEngine().run(request), engine_of("python").run(request)
    assert {"out_i32", "out_f64", "out_bool"} <= set(actual.buffers)
    for name, values in actual.buffers.items():
        differing = np.flatnonzero(~BITS.agree(values, expected.buffers[name]))
        assert not len(differing), f"{name}[{differing[0]}]"
    assert bool(actual.faults) == bool(expected.faults)


@pytest.mark.slow
@given(kernels())
def test_the_jit_engine_agrees_with_the_numpy_engine(folder: Path, generated: Generated) -> None:
    request = _request(generated, folder)
    assert_same(LlvmEngine().run(request), NumpyEngine().run(request), request)
