"""Barriers in shared memory, bulk copies and bulk reductions on a GPU: printed kernels and inline PTX, compared with the emulator.

    python -m tests.gpu.bulk_copies [--runs 100] [--engine cuda]

Prints a row for each kernel with the number of different results, and exits with 1 if one differs.
"""

import argparse
import sys
from typing import Any

import numpy as np
import simtbed as st
from simtbed.testing.conformance import FEATURES

from tests.checkers.corpus import PAIRS
from tests.cuda_cpp import test_mbarriers
from tests.language import test_bulk_reductions as reductions


def main() -> int:
    """Compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="launches of each kernel (default 100)")
    parser.add_argument("--engine", choices=("cuda", "jit", "numpy"), default="cuda")
    options = parser.parse_args()
    total = 0
    cases: list[tuple[Any, ...]] = [
        (own.name, own.kernel, own.block, 0, own.args, np.array(own.expected))
        for own in FEATURES
        if own.name in ("phases_of_barriers", "bulk_copies", "bulk_stores", "bulk_reductions")
    ]
    y = test_mbarriers.X
    copied, args = st.cuda_source(test_mbarriers.COPIED)["copied"], {"x": y, "out": np.zeros_like(y), "n": 512}
    cases.append(("inline PTX, bulk copies", copied, 64, 2048, args, y.reshape(2, 256)[:, ::-1].ravel()))
    stored = st.cuda_source(test_mbarriers.STORED)["stored"]
    cases.append(("inline PTX, bulk stores", stored, 64, 0, args, 2 * y))
    x = np.arange(96, dtype=np.float32)
    for name, text, shared in (("static", test_mbarriers.STATIC, 0), ("dynamic", test_mbarriers.DYNAMIC, 256)):
        pipe, args = st.cuda_source(text)["pipe"], {"x": x, "out": np.zeros_like(x)}
        cases.append((f"inline PTX, {name}", pipe, 64, shared, args, 2 * x.reshape(3, 32)[:, ::-1].ravel()))
    for name in (
        "barrier_used_before_the_block_synchronised",
        "bulk_copy_that_is_not_waited_for",
        "bytes_that_nothing_completes",
        "buffer_filled_again_before_the_copy_has_read_it",
        "bulk_store_without_a_fence",
    ):
        pair = PAIRS[name]
        args = {**pair.args, "FIXED": True}
        expected = pair.launch(True, "jit").out
        cases.append((name, pair.kernel, pair.block, 0, args, expected))
    for case in (*reductions.CASES, *reductions.SPECIAL):
        bits = case.bits(case.launch("jit"))
        different = sum(int((case.bits(case.launch(options.engine)) != bits).sum()) for _ in range(options.runs))
        total += different
        sys.stdout.write(f"{case.name:50} {different:8} of {options.runs * bits.size:8} differ\n")
    for name, kernel, block, shared, args, expected in cases:
        different = 0
        for _ in range(options.runs):
            out = st.launch(kernel, grid=1, block=block, shared=shared, args=args, engine=options.engine).out
            different += int((np.asarray(out).ravel() != expected).sum())
        total += different
        sys.stdout.write(f"{name:50} {different:8} of {options.runs * expected.size:8} differ\n")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
