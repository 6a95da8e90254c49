"""Matrix multiply-accumulates of a warpgroup on a GPU, compared with the emulator: types, layouts in shared memory, flags.

    python -m tests.gpu.wgmma [--seeds 5] [--every 1] [--engine cuda]

Each form is a kernel of its own. Prints a row for each form with the number of different results, and exits with 1 if one differs.
"""

import argparse
import sys

from tests.language import wgmma_cases


def main() -> int:
    """Compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="random matrices of each form (default 5)")
    parser.add_argument("--every", type=int, default=1, help="compare every so many forms (default 1)")
    parser.add_argument("--engine", choices=("cuda", "jit", "numpy"), default="cuda")
    options = parser.parse_args()
    total = 0
    for case in wgmma_cases.cases()[:: options.every]:
        different, size = 0, 0
        for seed in range(options.seeds):
            a, b, c = wgmma_cases.operands(case.row, seed)
            actual, expected = wgmma_cases.run(case, a, b, c, options.engine), wgmma_cases.expected(case, a, b, c)
            different, size = different + int((actual != expected).sum()), size + expected.size
        total += different
        sys.stdout.write(f"{case.name:70} {different:8} of {size:8} differ\n")
        sys.stdout.flush()
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
