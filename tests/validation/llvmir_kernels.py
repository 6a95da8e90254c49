"""Random kernels through the LLVM IR front end, compared with Python: `python -m tests.validation.llvmir_kernels COUNT`."""

import argparse
import sys
from collections import Counter

from simtbed.errors import CompileError

from tests.llvmir.test_random_kernels import difference

JIT_INTERVAL, PYTHON_INTERVAL = 500, 20  # kernels; jit compiles for seconds
PROGRESS_INTERVAL = 500  # kernels


def engine_of(seed: int) -> str:
    """Return the engine for a seed: mostly numpy."""
    if seed % JIT_INTERVAL == 0:
        return "jit"
    return "python" if seed % PYTHON_INTERVAL == 1 else "numpy"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0, help="first seed (0)")
    parser.add_argument("--numba", action="store_true", help="compile with Numba-CUDA")
    options = parser.parse_args()
    outcomes: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.count):
        try:
            text = difference(seed, engine_of(seed), options.numba)
        except CompileError as error:
            text, kind = f"seed {seed}: {error}", "refused"
        else:
            kind = "different" if text else "equal"
        outcomes[kind] += 1
        if text:
            print(text, flush=True)
        if outcomes.total() % PROGRESS_INTERVAL == 0:
            print(f"{outcomes.total()} of {options.count} kernels", file=sys.stderr, flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(outcomes.items())))
    return int(outcomes.total() != outcomes["equal"])


if __name__ == "__main__":
    sys.exit(main())
