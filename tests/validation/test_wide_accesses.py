"""Random CUDA C++ kernels that access bytes of global, shared and local memory with several types, on every engine."""

import numpy as np
import pytest
import simtbed as st
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance.outcomes import engine_of

TYPES = {
    "unsigned char": 1, "short": 2, "int": 4, "float": 4, "double": 8, "float2": 8, "uint4": 16, "uchar4": 4,
    "long long": 8,
}  # fmt: skip
BYTES, THREADS = 1024, 32
KERNELS = 10


def random_text(seed: int) -> str:
    """Return a kernel: copies between memories at random offsets, with random types. A thread accesses 32 bytes of its own."""
    rng = np.random.default_rng(seed)
    lines = []
    for number in range(int(rng.integers(4, 9))):
        source, target = rng.choice(["x", "tile", "own"], 2)
        type = str(rng.choice(list(TYPES)))
        size = TYPES[type]
        first, second = (int(rng.integers(0, 32 // size)) for _ in range(2))
        places = [
            f"(({type} *)({memory}{'' if memory == 'own' else ' + 32 * threadIdx.x'}))[{index} + n]"
            if rng.random() < 0.5
            else f"*({type} *)&{memory}[{'' if memory == 'own' else 'threadIdx.x * 32 + '}{index * size} + {size} * n]"
            for memory, index in ((source, first), (target, second))
        ]
        lines.append(f"    {type} v{number} = {places[0]};\n    {places[1]} = v{number};")
        if type == "int" and target != "own":
            lines.append(f"    atomicXor(&{places[1]}, {int(rng.integers(1, 1000))});")
    body = "\n".join(lines)
    return f"""
__global__ void copies(unsigned char *x, unsigned char *out, int n)
{{
    __shared__ __align__(16) unsigned char tile[{BYTES}];
    __align__(16) unsigned char own[32];
    for (int i = 0; i < 32; ++i) {{ tile[32 * threadIdx.x + i] = x[32 * threadIdx.x + i] + 1; own[i] = i + n; }}
{body}
    for (int i = 0; i < 32; ++i) {{
        out[64 * threadIdx.x + i] = tile[32 * threadIdx.x + i];
        out[64 * threadIdx.x + 32 + i] = own[(i + n) % 32];
    }}
}}
"""


@pytest.mark.parametrize("seed", range(KERNELS))
def test_all_engines_agree(seed: int) -> None:
    kernel = st.cuda_source(random_text(seed)).copies

    def arguments() -> dict[str, object]:
        x = np.random.default_rng(seed).integers(0, 256, BYTES, np.uint8)
        return {"x": x, "out": st.empty(2 * BYTES, "u8"), "n": 0}

    expected = engine_of("python").run(prepare_request(kernel, grid=1, block=THREADS, args=arguments())).buffers
    counts = []
    for engine in ("jit", "numpy", "python"):
        result = st.launch(kernel, grid=1, block=THREADS, args=arguments(), engine=engine, check="all")
        for name in ("x", "out"):
            if name in result.buffers:
                assert result.buffers[name].tobytes() == expected[name].tobytes(), (engine, name)
        counts += [] if result.counts is None else [result.counts]
    np.testing.assert_array_equal(counts[0], counts[1])
