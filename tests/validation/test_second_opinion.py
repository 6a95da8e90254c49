"""The same CUDA C++ text on the jit engine and compiled by a host compiler: equal bits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.cuda_cpp.types import RecordType
from simtbed.language.types import SCALARS, Scalar
from simtbed.runtime.arrays import NewArray

from tests.cuda_cpp.habits_classes import HABITS
from tests.cuda_cpp.round_trip import arguments, read_back
from tests.validation.host_compiler import COMPILER, HostKernels
from tests.validation.kernels import KERNELS

INEXACT = re.compile(
    r"\b(?:__)?(?:exp|exp2|exp10|expm1|log|log2|log10|log1p|sin|cos|tan|sincos|sinh|cosh|tanh|asin|acos|atan|atan2|pow|erf|erfc|erfinv|"
    r"rsqrt|cbrt|hypot|lgamma|tgamma|sinpi|cospi|normcdf|fdividef?)f?\("
)
"""Functions without one right result."""

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no g++ and no clang++ is installed")


def _converted(kernel: Any, args: dict[str, Any]) -> list[Any]:
    """Return the arguments of a launch as those of compiled code, with copies of the arrays."""
    results = []
    for parameter in kernel.parameters:
        value = args[parameter.name]
        if isinstance(value, np.ndarray):
            value = value.copy()
        elif isinstance(value, NewArray):
            value = np.zeros(value.shape, SCALARS[str(value.type)].dtype)
        elif isinstance(parameter.type, Scalar):
            value = parameter.type.dtype.type(value)
        elif isinstance(parameter.type, RecordType):
            fields = parameter.type.fields
            formats = [type.dtype for type, _ in fields.values()]
            layout: Any = {"names": list(fields), "formats": formats, "offsets": [at for _, at in fields.values()]}
            value = (
                np.array(value, np.dtype(layout | {"itemsize": parameter.type.size}))[()]
                if fields
                else np.zeros(1, np.uint8)[0]
            )
        results.append(value)
    return results


def test_kernels_in_users_habits(tmp_path: Path) -> None:
    texts = {name: (habit.text, habit.kernel) for name, habit in HABITS.items()}
    different, launched = {}, 0
    compiled, runs = {}, {}
    for name, habit in HABITS.items():
        source = st.cuda_source(habit.text, instances=habit.instances)
        kernel = source[habit.kernel or next(iter(source))]
        compiled[name] = (texts[name][0], kernel.__name__)
        runs[name] = kernel
    host = HostKernels(compiled, tmp_path)
    for name, habit in HABITS.items():
        if name in host.refused:
            continue
        inputs = habit.args(np.random.default_rng(1))
        result = st.launch(
            runs[name], grid=habit.grid, block=habit.block, args=inputs, shared=habit.shared, engine="jit"
        )
        values = _converted(runs[name], inputs)
        host.launch(name, habit.grid, habit.block, values, habit.shared)
        launched += 1
        own = dict(zip((p.name for p in runs[name].parameters), values, strict=True))
        wrong = [n for n, array in result.buffers.items() if n in own and array.tobytes() != own[n].tobytes()]
        if wrong:
            different[name] = wrong
    print(launched, host.refused, different)


def test_validation_kernels(tmp_path: Path) -> None:
    texts, runs = {}, {}
    for kernel in KERNELS:
        size, block = kernel.counted
        shape = {"grid": kernel.grid(size, block), "block": block, "shared": kernel.shared(size, block)}
        result = st.launch(kernel.kernel, args=kernel.make(size, block), faults="return", engine="jit", **shape)
        request = result.request
        own, printed = read_back(request)
        if INEXACT.search(printed.with_lines()):
            continue
        texts[kernel.name] = (printed.with_lines(), printed.kernel)
        runs[kernel.name] = (result, own, printed)
    host = HostKernels(texts, tmp_path)
    different = {}
    for name, (result, own, printed) in runs.items():
        if name in host.refused:
            continue
        request = result.request
        inputs = _converted(own, arguments(own, printed, request))
        shared = request.dynamic_shared + printed.carved_bytes
        host.launch(name, request.grid, request.block, inputs, shared)
        arrays = dict(zip(printed.arguments, inputs, strict=False))
        wrong = []
        for array in request.specialisation.summary.changed:
            owner, path = request.owners.get(array, (array, ()))
            mine = result.buffers[owner]
            for key in path:
                mine = mine[key]
            if np.ascontiguousarray(mine).tobytes() != request.forms[array].shaped(arrays[array]).tobytes():
                wrong.append(array)
        if wrong:
            different[name] = wrong
    print(len(runs), len(host.refused), host.refused)
    print(different)
