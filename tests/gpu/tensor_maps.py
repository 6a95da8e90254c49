"""Copies of boxes of tensors on a GPU, compared with the emulator bit by bit.

    python -m tests.gpu.tensor_maps [--runs 20] [--engine cuda]

Prints a row for each copy with the number of different results, and exits with 1 if one differs.
"""

from __future__ import annotations

import argparse
import sys

from tests.language.test_tensor_maps import CASES


def main() -> int:
    """Compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="launches of each kernel (default 20)")
    parser.add_argument("--engine", choices=("cuda", "jit", "numpy"), default="cuda")
    options = parser.parse_args()
    total = 0
    for case in CASES:
        expected, counts = case.bits(case.launch("jit")), [0, 0]
        for _ in range(options.runs):
            for n, bits in enumerate(case.bits(case.launch(options.engine))):
                counts[n] += int((bits != expected[n]).sum())
                if counts[n] == int((bits != expected[n]).sum()) > 0:
                    at = tuple(own[0] for own in (bits != expected[n]).nonzero())
                    sys.stdout.write(f"    first at {at}: {bits[at]:#x} instead of {expected[n][at]:#x}\n")
        total += sum(counts)
        size = options.runs * (expected[0].size + expected[1].size)
        sys.stdout.write(f"{case.name:40} {counts[0]:8} loaded and {counts[1]:8} stored of {size:8} differ\n")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
