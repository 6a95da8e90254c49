"""`python -m simtbed.numba -m simtbed.numba.trial MODULE`: launch a kernel of `numba.cuda` or `numba_cuda_mlir.cuda`."""

import importlib
import sys
import warnings
from typing import Any

import numpy as np


def double_all(module: str) -> None:
    """Double numbers by a kernel of a module. Raises ValueError for a wrong result, and the module's errors."""
    cuda = importlib.import_module(module)

    def double(x: Any) -> None:
        x[cuda.threadIdx.x] *= 2

    x = np.ones(32, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a small grid
        cuda.jit(double)[1, 32](x)
    if not (x == 2).all():
        raise ValueError("a kernel runs, and its result is wrong")


if __name__ == "__main__":
    double_all(sys.argv[1])
