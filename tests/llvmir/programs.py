"""Kernels of translated LLVM IR, and launches of them on every engine."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import simtbed as st
from simtbed.frontend.launchable import ProgramKernel
from simtbed.llvmir.parameters import Parameter, Translation
from simtbed.llvmir.translate import translate
from simtbed.span import Span

SPAN = Span("kernel.ll", 1, 1, 1, 2)
ENGINES = ("python", "numpy", "jit")


def translated(text: str, parameters: Sequence[Parameter], entry: str = "kernel", **options: Any) -> Translation:
    return translate(text, entry, parameters, name="kernel", span=SPAN, span_of=lambda position: None, **options)


def run(
    translation: Translation,
    arguments: Mapping[str, Any],
    engine: Any,
    *,
    grid: Any = 1,
    block: Any = 32,
    shared: int = 0,
    cluster: Any = 1,
    check: Any = (),
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays after a launch. arguments: by the names of the program's parameters; others are ignored."""
    names = [param.name for param in translation.program.kernel.params]
    args = {name: np.array(arguments[name]) for name in names}
    kernel = ProgramKernel(translation.program)
    result = st.launch(
        kernel, grid=grid, block=block, args=args, engine=engine, shared=shared, cluster=cluster, check=check
    )
    assert not result.faults, result.faults
    return {name: np.array(result[name]) if name in result.buffers else args[name] for name in names if args[name].ndim}
