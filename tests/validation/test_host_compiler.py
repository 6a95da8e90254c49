"""CUDA C++ kernels by the host's g++ have the bits of the emulators: habits, random accesses, printed validation kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.runtime.engine import Request

from tests.cuda_cpp.habits_memory import HABITS
from tests.cuda_cpp.host_compiler import COMPILER, Unsupported, host_result
from tests.cuda_cpp.round_trip import arguments, read_back
from tests.validation.kernels import KERNELS
from tests.validation.test_wide_accesses import random_text

pytestmark = pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")
LEAST_HABITS, LEAST_KERNELS = 10, 4
"""Texts without warps, which the runtime must compile."""
SAMPLE = KERNELS[::24]


def _differences(request: Request, buffers: Any, folder: Path) -> list[str]:
    actual = host_result(request, folder)
    changed = request.specialisation.summary.changed
    expected = {name: np.ascontiguousarray(buffers[name]).tobytes() for name in changed if name in buffers}
    return [name for name, data in expected.items() if actual[name].tobytes() != data]


def test_habits_have_the_same_bits(tmp_path: Path) -> None:
    compiled = 0
    for number, (name, habit) in enumerate(HABITS.items()):
        source = st.cuda_source(habit.text, instances=habit.instances)
        kernel = source[habit.kernel or next(iter(source))]
        args = habit.args(np.random.default_rng(1))
        result = st.launch(
            kernel, grid=habit.grid, block=habit.block, args=args, shared=habit.shared, cooperative=habit.cooperative
        )
        if habit.rtol or result.request.specialisation.cuda_text is None:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            assert _differences(result.request, result.buffers, folder) == [], name
        except Unsupported:
            continue
        compiled += 1
    assert compiled >= LEAST_HABITS


@pytest.mark.parametrize("seed", range(4))
def test_random_accesses_have_the_same_bits(seed: int, tmp_path: Path) -> None:
    args = {"x": np.random.default_rng(seed).integers(0, 256, 1024, np.uint8), "out": st.empty(2048, "u8"), "n": 0}
    result = st.launch(st.cuda_source(random_text(seed)).copies, grid=1, block=32, args=args)
    assert _differences(result.request, result.buffers, tmp_path) == []
    assert _differences(result.request, {"out": result.buffers["out"] + 1}, tmp_path) == ["out"]


def test_printed_validation_kernels_have_the_same_bits(tmp_path: Path) -> None:
    compiled = 0
    for number, validated in enumerate(SAMPLE):
        size, block = validated.counted
        shape = {"grid": validated.grid(size, block), "block": block, "shared": validated.shared(size, block)}
        request = st.launch(validated.kernel, args=validated.make(size, block), faults="return", **shape).request
        kernel, printed = read_back(request)
        shape["shared"] = request.dynamic_shared + printed.carved_bytes
        result = st.launch(
            kernel, args=arguments(kernel, printed, request), device=request.device, counters=False, **shape
        )
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            assert _differences(result.request, result.buffers, folder) == [], validated.kernel.__name__
        except Unsupported:
            continue
        compiled += 1
    assert compiled >= LEAST_KERNELS
