"""The names of fast functions in CUDA C++, inline PTX and Numba: each has the bits of its row of the table of operations."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import simtbed as st
from simtbed.ir.ops import TABLE
from simtbed.runtime.registry import EngineName

from .test_special_functions import Values, operands

CUDA = {
    "__expf(x)": "fast_exp", "__exp10f(x)": "fast_exp10", "__logf(x)": "fast_log", "__log2f(x)": "fast_log2",
    "__log10f(x)": "fast_log10", "__sinf(x)": "fast_sin", "__cosf(x)": "fast_cos", "__tanf(x)": "fast_tan",
    "__powf(x, y)": "fast_pow", "__fdividef(x, y)": "fast_divide", "__tanhf(x)": "fast_tanh", "rsqrtf(x)": "fast_rsqrt",
    "rsqrt(x)": "fast_rsqrt",
}  # fmt: skip
PTX = {
    f"{name}.approx{suffix}.f32": row + suffix.replace(".", "_")
    for name, row in {"ex2": "fast_exp2", "lg2": "fast_log2", "rcp": "fast_rcp", "rsqrt": "fast_rsqrt", "sqrt": "fast_sqrt"}.items()
    for suffix in ("", ".ftz")
} | {
    **{f"{name}.approx{suffix}.f32": row for name, row in {"sin": "fast_sin", "cos": "fast_cos"}.items() for suffix in ("", ".ftz")},
    "tanh.approx.f32": "fast_tanh", "div.approx.f32": "fast_divide", "div.approx.ftz.f32": "fast_divide_ftz",
    "div.full.f32": "full_divide",
}  # fmt: skip
NUMBA = {
    "libdevice.fast_expf(x)": "fast_exp", "libdevice.fast_exp10f(x)": "fast_exp10", "libdevice.fast_logf(x)": "fast_log",
    "libdevice.fast_log2f(x)": "fast_log2", "libdevice.fast_log10f(x)": "fast_log10", "libdevice.fast_sinf(x)": "fast_sin",
    "libdevice.fast_cosf(x)": "fast_cos", "libdevice.fast_tanf(x)": "fast_tan", "libdevice.fast_powf(x, y)": "fast_pow",
    "libdevice.fast_fdividef(x, y)": "fast_divide", "libdevice.rsqrtf(x)": "fast_rsqrt",
}  # fmt: skip


def differing(names: dict[str, str], x: Values, y: Values, results: Values) -> list[str]:
    """Return the names with results, one row each, that differ from those of their row of the table."""
    wrong = []
    for (name, row), values in zip(names.items(), results, strict=True):
        own = TABLE[row]
        with np.errstate(all="ignore"):
            expected = own.meaning(*(x, y)[: own.operands])
        if not own.policy_for(own.types[0]).agree(values, expected).all():
            wrong.append(name)
    return wrong


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_names_of_cuda(engine: EngineName) -> None:
    x, y = operands(350)

    def assembly(name: str) -> str:
        two = name.startswith("div")
        return f'asm("{name} %0, %1{", %2" * two};" : "=f"(r) : "f"(x){", " + chr(34) + "f" + chr(34) + "(y)" if two else ""});'

    statements = [f"r = {name};" for name in CUDA] + [assembly(name) for name in PTX]
    text = "__global__ void k(const float *a, const float *b, float *out, int n) {\n"
    text += "int i = blockIdx.x * blockDim.x + threadIdx.x; float x = a[i], y = b[i], r;\n"
    text += "\n".join(f"{statement} out[{n} * n + i] = r;" for n, statement in enumerate(statements)) + "\n}"
    out = st.empty((len(statements), x.size), st.f32)
    kernel = st.cuda_source(text)["k"]
    launched = st.launch(kernel, grid=x.size // 128, block=128, args=(x, y, out, x.size), engine=engine)
    names = CUDA | PTX
    assert len(names) == len(statements) and differing(names, x, y, np.asarray(launched.out)) == []


HALVES = {
    "ex2.approx.f16": "fast_exp2_ftz",
    "tanh.approx.f16": "fast_tanh",
    "ex2.approx.ftz.bf16": "fast_exp2_ftz",
    "tanh.approx.bf16": "fast_tanh",
}
"""Instructions of halves, and the row of f32 whose result they truncate."""


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_halves_are_truncated(engine: EngineName) -> None:
    """All 2^16 arguments. Beyond the exponents of f16 is infinity."""
    text = "__global__ void k(const unsigned short *a, unsigned short *out, int n) {\n"
    text += "int i = blockIdx.x * blockDim.x + threadIdx.x; unsigned short r;\n"
    for n, name in enumerate(HALVES):
        text += f'asm("{name} %0, %1;" : "=h"(r) : "h"(a[i])); out[{n} * n + i] = r;\n'
    x, out = np.arange(1 << 16, dtype=np.uint16), st.empty((len(HALVES), 1 << 16), st.u16)
    launched = st.launch(st.cuda_source(text + "}")["k"], grid=512, block=128, args=(x, out, x.size), engine=engine)
    for (name, row), bits in zip(HALVES.items(), np.asarray(launched.out), strict=True):
        with np.errstate(all="ignore"):
            if name.endswith("bf16"):
                exact = TABLE[row].meaning((x.astype(np.uint32) << 16).view(np.float32))
                values, expected = (
                    (v.astype(np.uint32) << 16).view(np.float32) for v in (bits, exact.view(np.uint32) >> 16)
                )
            else:
                exact = TABLE[row].meaning(x.view(np.float16).astype(np.float32)).astype(np.float64)
                unit = 2.0 ** (np.maximum(np.frexp(exact)[1], -13) - 11)
                values, expected = bits.view(np.float16), np.where(exact < 65536, np.trunc(exact / unit) * unit, exact)
                expected = expected.astype(np.float16)
        equal = (values == expected) & (np.signbit(values) == np.signbit(expected)) | np.isnan(values) & np.isnan(
            expected
        )
        assert equal.all(), name


@pytest.mark.slow
def test_names_of_numba(tmp_path: Path) -> None:
    pytest.importorskip("numba.cuda")
    x, y = operands(350)
    np.savez(tmp_path / "operands.npz", x=x, y=y)
    statements = "\n".join(f"    out[{n}, i] = {name}" for n, name in enumerate(NUMBA))
    script = tmp_path / "names.py"
    script.write_text(
        "import numpy as np\nfrom numba import cuda\nfrom numba.cuda import libdevice\n\n@cuda.jit\ndef k(a, b, out):\n"
        f"    i = cuda.grid(1)\n    x, y = a[i], b[i]\n{statements}\n\nstored = np.load('operands.npz')\n"
        f"out = np.zeros(({len(NUMBA)}, stored['x'].size), np.float32)\n"
        "k[out.shape[1] // 128, 128](stored['x'], stored['y'], out)\nnp.save('results.npy', out)\n"
    )
    command = [sys.executable, "-m", "simtbed", "numba", str(script)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert differing(NUMBA, x, y, np.load(tmp_path / "results.npy")) == []
