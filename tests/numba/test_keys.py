"""Keys of kernels: the files whose versions are in them."""

from types import SimpleNamespace
from typing import Any

import pytest
from simtbed.numba.keys import _KeyWriter

PYTHON = "/usr/lib/python3/"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("", True),
        (f"{PYTHON}random.py", True),
        (f"{PYTHON}site-packages/numba_cuda/numba/cuda/cudaimpl.py", True),
        (f"{PYTHON}site-packages/numba_cuda/numba/cuda/tests/test_a.py", False),
        (f"{PYTHON}site-packages/users/kernels.py", False),
        (f"{PYTHON}dist-packages/users/kernels.py", False),
        ("/program/kernels.py", False),
    ],
)
def test_packages_of_the_user_are_no_library(file: str, expected: bool) -> None:
    """Their globals may change without a new version; the folder of the standard library may contain them."""
    folders = (f"{PYTHON}site-packages/numba_cuda/", PYTHON)
    package: Any = SimpleNamespace(folders=folders, submodule=lambda name: None)
    assert _KeyWriter(package).is_library(file) == expected
