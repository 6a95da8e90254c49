"""Digests of the inputs of all validation kernels: `python -m tests.validation.inputs` prints one JSON object.

Inputs must not depend on the processor. NumPy selects functions by the features of the processor, and their results differ in
the last bits: `exp`, `log`, `sin`, `linalg`, products of matrices.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.validation.kernels import KERNELS

ROOT = Path(__file__).parents[2]


def digests() -> dict[str, dict[str, str]]:
    """Return the digest of each argument, by kernel and name, at the counted size."""
    return {kernel.name: {name: _digest(value) for name, value in kernel.small.make().items()} for kernel in KERNELS}


def _digest(value: Any) -> str:
    """Return 16 hexadecimal digits of type, shape and bytes."""
    array = np.asarray(value)
    text = f"{array.dtype} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes()
    return hashlib.sha256(text).hexdigest()[:16]


if __name__ == "__main__":
    print(json.dumps(digests(), indent=0))
