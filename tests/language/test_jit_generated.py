"""Generated kernels: the jit engine gives the numpy engine's outputs, counts and faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, note
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance import assert_same
from simtbed.testing.source_text import kernel_from_source
from simtbed.testing.strategies import Generated, kernels


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generated_jit")


@pytest.mark.slow
@given(kernels())
def test_the_engines_agree(folder: Path, generated: Generated) -> None:
    note(generated.source)
    kernel = kernel_from_source(generated.source, folder)
    request = prepare_request(
        kernel, grid=generated.grid, block=generated.block, args=generated.arguments(), step_limit=1000
    )
    assert_same(LlvmEngine().run(request), NumpyEngine().run(request), request)
