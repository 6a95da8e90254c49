"""Tensor cores of a GPU in CUDA C++, compared with the emulator: every `wmma` and `mma.sync`, the bits of each result.

    python -m tests.gpu.wmma [--seeds 20] [--engine cuda]

Prints a row for each instruction with the number of different results, and exits with 1 if one differs.
"""

import argparse
import sys
from collections.abc import Iterator

import numpy as np
from simtbed.ir.matrices import INSTRUCTIONS
from simtbed.runtime.registry import EngineName

from tests.cuda_cpp import test_tensor_cores, test_wmma
from tests.recorded_fragments import Values


def products(seeds: int, engine: EngineName) -> Iterator[tuple[str, Values, Values]]:
    """Yield name, the engine's results and the expected ones of each instruction."""
    for type, total, shape in test_wmma.CASES:
        kernels = test_wmma.source(type, total, shape)
        for seed in range(seeds):
            a, b, c = test_wmma.matrices(type, total, shape, seed)
            d = test_wmma.expected(type, total, a, b, c)
            for name in ("in_global", "in_shared"):
                actual = test_wmma.launched(kernels[name], a, b, c, type, total, engine)
                yield f"wmma {'x'.join(map(str, shape))} {type} {total} {name}", actual, np.stack([d, d])
    for row in INSTRUCTIONS.values():
        for seed in range(seeds):
            a, b, c = test_tensor_cores.operands(row, seed)
            yield (
                f"mma {row.name}",
                test_tensor_cores.run(row, a, b, c, engine),
                test_tensor_cores.expected(row, a, b, c),
            )


def main() -> int:
    """Compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="random matrices of each instruction (default 20)")
    parser.add_argument("--engine", choices=("cuda", "jit", "numpy"), default="cuda")
    options = parser.parse_args()
    counts = dict[str, tuple[int, int]]()
    for name, actual, expected in products(options.seeds, options.engine):
        different, size = counts.get(name, (0, 0))
        counts[name] = different + int((actual != expected).sum()), size + expected.size
    for name, (different, size) in counts.items():
        sys.stdout.write(f"{name:45} {different:8} of {size:8} differ\n")
    return int(any(different for different, _ in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
