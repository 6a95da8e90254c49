"""Generated kernels: the jit engine gives the numpy engine's outputs, counts and faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, note
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.runtime.request import prepare_request

from tests.language.test_generated import load_generated
from tests.language.test_jit import assert_same
from tests.strategies import Generated, kernels


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generated_jit")


@given(kernels())
def test_the_engines_agree(folder: Path, drawn: Generated) -> None:
    note(drawn.source)
    kernel = load_generated(drawn.source, folder)
    request = prepare_request(kernel, grid=drawn.grid, block=drawn.block, args=drawn.arguments(), step_limit=1000)
    assert_same(LlvmEngine().run(request), NumpyEngine().run(request), request)
