"""The process that Nsight Compute watches: each launch of the timed kernels twice, the second with warm caches."""

from __future__ import annotations

import sys

import numpy as np
import simtbed as st

from .timed import every
from .timing import chosen


def main(pattern: str) -> None:
    """Launch the cases that a pattern fits on the GPU."""
    for case in chosen(every(), pattern):
        args = {name: st.DeviceArray(v) if isinstance(v, np.ndarray) else v for name, v in case.make().items()}
        for _ in range(2):
            st.launch(case.kernel, grid=case.grid, block=case.block, args=args, shared=case.shared, engine="cuda")


if __name__ == "__main__":
    main(sys.argv[1])
