"""The same CUDA C++ text on the jit engine and compiled by a host compiler: equal bits."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.cuda_cpp.kernel import CudaKernel
from simtbed.engines.cuda.printer import Source
from simtbed.language.types import SCALARS, Scalar
from simtbed.llvmir.debug import ArrayOf, Record, SourceType
from simtbed.runtime.arrays import NewArray

from tests.cuda_cpp.habits import HABITS
from tests.cuda_cpp.host_compiler import COMPILER, HostKernels
from tests.cuda_cpp.round_trip import arguments, read_back
from tests.validation.kernels import KERNELS
from tests.validation.test_wide_accesses import random_text

INEXACT = re.compile(
    r"\b(?:__)?(?:exp|exp2|exp10|expm1|log|log2|log10|log1p|sin|cos|tan|sincos|sinh|cosh|tanh|asin|acos|atan|atan2|pow|erf|erfc|erfinv|"
    r"rsqrt|cbrt|hypot|lgamma|tgamma|sinpi|cospi|normcdf|fdividef?)f?\("
)
"""Functions without one right result."""
NOT_IN_THE_RUNTIME = {
    "adamw_step", "filter_aggregated", "fir_decimate", "quantise_rows", "small_weights", "stiff_kinetics",
}  # fmt: skip
"""Kernels with 16-bit floats, asynchronous copies, active masks and a function without one right result."""

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no g++ and no clang++ is installed")


def _value(type: SourceType, value: Any) -> bytes:
    """Return the bytes of an object that is passed by value."""
    if isinstance(type, Record):
        data = bytearray(type.size)
        for item, (_, kind, offset) in zip(value, type.fields, strict=True):
            piece = _value(kind, item)
            data[offset : offset + len(piece)] = piece
        return bytes(data)
    if isinstance(type, ArrayOf):
        return b"".join(_value(type.element, item) for item in value)
    assert isinstance(type, Scalar)
    return np.array(value, type.dtype).tobytes()


def _converted(kernel: Any, args: dict[str, Any]) -> list[Any]:
    """Return the arguments of a launch as those of compiled code, with copies of the arrays."""
    results = []
    for parameter in kernel.parameters:
        value = args[parameter.name]
        if isinstance(parameter.type, Record):
            value = np.void(_value(parameter.type, value))
        elif isinstance(value, np.ndarray):
            value = value.copy()
        elif isinstance(value, NewArray):
            value = np.zeros(value.shape, SCALARS[str(value.type)].dtype)
        elif isinstance(parameter.type, Scalar):
            value = parameter.type.dtype.type(value)
        results.append(value)
    return results


def _different(result: st.Result, arrays: Mapping[str, Any]) -> bool:
    """Return whether a launch left other bits in its arrays than those given, by the names in the program."""
    request = result.request
    for array, expected in arrays.items():
        owner, path = request.owners.get(array, (array, ()))
        mine = result.buffers[owner]
        for key in path:
            mine = mine[key]
        if np.ascontiguousarray(mine).tobytes() != np.ascontiguousarray(expected).tobytes():
            return True
    return False


def test_kernels_in_users_habits(tmp_path: Path) -> None:
    kernels = {}
    for name, habit in HABITS.items():
        source = st.cuda_source(habit.text, instances=habit.instances)
        kernels[name] = source[habit.kernel or next(iter(source))]
    texts = {name: (HABITS[name].text, kernel.__name__) for name, kernel in kernels.items()}
    host = HostKernels(texts, tmp_path)
    different = set()
    for name in [name for name in texts if name not in host.refused]:
        habit, kernel = HABITS[name], kernels[name]
        if INEXACT.search(habit.text):
            continue
        inputs = habit.args(np.random.default_rng(1))
        result = st.launch(kernel, grid=habit.grid, block=habit.block, args=inputs, shared=habit.shared, engine="jit")
        values = _converted(kernel, inputs)
        host.launch(name, habit.grid, habit.block, values, habit.shared)
        arrays = dict(zip((parameter.name for parameter in kernel.parameters), values, strict=True))
        if _different(result, {array: arrays[array] for array in result.buffers if array in arrays}):
            different.add(name)
    assert different <= {"addresses as numbers"}  # the order and the alignment of arrays are those of the host
    # what the headers of the host do not have
    known = ("cooperative", "complex", "__NV_ATOMIC", "long2", "__hadd", "__fadd_rd", "normcdfinv", "half")
    assert all(any(word in texts[name][0] for word in known) for name in host.refused), "\n".join(
        f"{n}: {t}" for n, t in host.refused.items()
    )


@pytest.mark.parametrize("seed", range(4))
def test_random_accesses(seed: int, tmp_path: Path) -> None:
    kernel = st.cuda_source(random_text(seed)).copies
    args = {"x": np.random.default_rng(seed).integers(0, 256, 1024, np.uint8), "out": st.zeros(2048, "u8"), "n": 0}
    result = st.launch(kernel, grid=1, block=32, args=args)
    values = _converted(kernel, args)
    HostKernels({"copies": (random_text(seed), "copies")}, tmp_path).launch("copies", 1, 32, values)
    assert not _different(result, {"out": values[1]})
    assert _different(result, {"out": values[1] + 1})


def test_validation_kernels(tmp_path: Path) -> None:
    runs: dict[str, tuple[st.Result, CudaKernel, Source]] = {}
    for kernel in KERNELS:
        size, block = kernel.counted
        shape = {"grid": kernel.grid(size, block), "block": block, "shared": kernel.shared(size, block)}
        result = st.launch(kernel.kernel, args=kernel.make(size, block), faults="return", engine="jit", **shape)
        own, printed = read_back(result.request)
        if not INEXACT.search(printed.with_lines()):
            runs[kernel.name] = (result, own, printed)
    texts = {name: (printed.with_lines(), printed.kernel) for name, (_, _, printed) in runs.items()}
    host = HostKernels(texts, tmp_path)
    different = set()
    for name in [name for name in runs if name not in host.refused]:
        result, own, printed = runs[name]
        request = result.request
        values = _converted(own, arguments(own, printed, request))
        host.launch(name, request.grid, request.block, values, request.dynamic_shared + printed.carved_bytes)
        arrays = dict(zip(printed.arguments, values, strict=False))
        shaped = {array: request.forms[array].shaped(arrays[array]) for array in request.specialisation.summary.changed}
        exact = {array: values for array, values in shaped.items() if array not in request.prepared.order_dependent}
        if _different(result, exact):
            different.add(name)
    assert different == set()
    assert set(host.refused) == NOT_IN_THE_RUNTIME
    assert len(runs) > 100
