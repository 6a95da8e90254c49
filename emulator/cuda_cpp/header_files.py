"""The files of `headers/`: declarations of CUDA C++ for the parser."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).with_name("headers")
INCLUDED = {"cooperative_groups.h": "cooperative_groups.h", "cooperative_groups/reduce.h": "cooperative_groups.h"}
"""Files of `headers/` by the name in an `#include`. Other files that a text includes are empty."""
INCLUDED |= dict.fromkeys(
    ("cuComplex.h", "complex", "thrust/complex.h", "cupy/complex.cuh", "pycuda-complex.hpp"), "complex.h"
)


@cache
def headers_digest() -> str:
    """Return a digest of the files in `headers/`."""
    files = sorted(FOLDER.glob("*.h"))
    return sha256("\0".join(file.read_text(encoding="utf-8") for file in files).encode()).hexdigest()


def included(name: str) -> str:
    """Return the text of an included file, empty for files without declarations for kernels."""
    file = INCLUDED.get(name)
    return "" if file is None else (FOLDER / file).read_text(encoding="utf-8")
