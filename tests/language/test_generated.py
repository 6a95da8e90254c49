"""Generated kernels: the numpy engine and the passes mean what the naive interpreter means."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, note
from simtbed import Kernel, launch
from simtbed.ir.ops import BITS
from simtbed.runtime.prepared import prepare
from simtbed.runtime.request import prepare_request
from simtbed.runtime.specialisation import Specialisation

from tests import naive
from tests.strategies import Generated, kernels


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generated")


def load_generated(source: str, folder: Path) -> Kernel:
    """The kernel of a module with this text."""
    name = f"generated_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = module.generated
    assert isinstance(kernel, Kernel)
    return kernel


def _same(found: Mapping[str, npt.NDArray[Any]], expected: dict[str, npt.NDArray[Any]]) -> None:
    for name, values in found.items():
        differing = np.flatnonzero(~BITS.agree(values, expected[name]))
        assert not len(differing), (
            f"{name}[{differing[0]}]: {values[differing[0]]}, naively {expected[name][differing[0]]}"
        )


@given(kernels())
def test_the_numpy_engine_agrees_with_one_thread_at_a_time(folder: Path, drawn: Generated) -> None:
    note(drawn.source)
    kernel, args = load_generated(drawn.source, folder), drawn.arguments()
    request = prepare_request(kernel, grid=drawn.grid, block=drawn.block, args=args, step_limit=1000)
    expected = naive.run(request)
    result = launch(kernel, grid=drawn.grid, block=drawn.block, args=args, step_limit=1000)
    assert {"out_i32", "out_f64", "out_bool"} <= set(result.buffers)
    _same(result.buffers, expected)
    _same(
        naive.run(replace(request, specialisation=Specialisation.of_program(prepare(request.program).program))),
        expected,
    )  # inlined and unrolled
