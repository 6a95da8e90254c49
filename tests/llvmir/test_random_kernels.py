"""Random kernels: results of the translated program and of Python, by two compilers to LLVM IR and several sets of passes."""

import linecache
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from simtbed.language.types import I64
from simtbed.llvmir.optimising import optimised
from simtbed.llvmir.parameters import ArrayParameter, Translation

from tests.llvmir import random_kernels
from tests.llvmir.numba_kernels import compiled
from tests.llvmir.plain_compiler import llvm_text
from tests.llvmir.programs import ENGINES, run, translated

THREADS = 32
COMBINED = ("instruction_combine", "simplify_cfg")
PASSES = (
    ("always_inliner", "sroa"),
    ("always_inliner", "sroa", "simplify_cfg", "instruction_combine", "simplify_cfg"),
    ("always_inliner", "sroa", "simplify_cfg", "jump_threading", "instruction_combine", "simplify_cfg"),
    ("always_inliner", "sroa", *COMBINED, "loop_rotate", "reassociate", "simplify_cfg", "sccp"),
    ("always_inliner", "sroa", "simplify_cfg", "jump_threading", "loop_unroll", "simplify_cfg", "aggressive_dce"),
)


def plain_translation(text: str, passes: tuple[str, ...]) -> Translation:
    """Translate a kernel that the plain compiler of the tests compiles."""
    parameters = [ArrayParameter(name, I64, 8) for name in ("a", "out")]
    return translated(optimised([llvm_text(text)], "kernel", passes), parameters)


def numba_translation(text: str) -> Translation:
    """Translate a kernel that Numba-CUDA compiles."""
    from numba import cuda

    linecache.cache["<kernel>"] = (len(text), None, text.splitlines(True), "<kernel>")  # Numba warns without a source
    kernel = random_kernels.functions(text, cuda.jit(device=True), cuda)["kernel"]
    module, entry, parameters = compiled(kernel, ("a", "out"))
    return translated(module, parameters, entry)


def python_result(text: str, a: npt.NDArray[Any]) -> npt.NDArray[Any]:
    index = SimpleNamespace(x=0)
    kernel = random_kernels.functions(text, lambda function: function, SimpleNamespace(threadIdx=index))["kernel"]
    result = np.full(THREADS, -1, np.int64)
    for index.x in range(THREADS):
        kernel(a.tolist(), result)
    return result


def difference(seed: int, engine: str, numba: bool = False) -> str:
    """Return the text of the random kernel of a seed if an engine disagrees with Python; else ""."""
    text = random_kernels.Generator(seed).text()
    translation = numba_translation(text) if numba else plain_translation(text, PASSES[seed % len(PASSES)])
    a = np.random.default_rng(seed).integers(0, 60, 40)
    expected = python_result(text, a)
    arguments: dict[str, Any] = {"a": a, "out": np.full(THREADS, -1, np.int64)}
    arguments |= {f"{name}@.shape0": np.int64(len(arguments[name])) for name in ("a", "out")}
    out = run(translation, arguments, engine, block=THREADS).get("out", arguments["out"])
    return "" if np.array_equal(out, expected) else f"seed {seed}, {engine}: {out} is not {expected}\n{text}"


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "kernels"), [("python", 15), ("numpy", 30), ("jit", 1)])
def test_random_kernels_agree_with_python(engine: str, kernels: int) -> None:
    first = ENGINES.index(engine) * 1_000_000
    assert not [text for seed in range(first, first + kernels) if (text := difference(seed, engine))]
