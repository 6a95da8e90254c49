"""The program's types of NumPy's types."""

from typing import Any

import numpy as np

from ..errors import LaunchError
from ..language.types import BOOL, COMPLEX, I64, U8, Scalar, from_dtype


def scalar_type(dtype: np.dtype[Any]) -> Scalar:
    """Return the type of a number in the program. Raises LaunchError for other types."""
    scalar = from_dtype(dtype)
    if not isinstance(scalar, Scalar):
        raise LaunchError(f"a value of {dtype} is not supported")
    return scalar


def element_type(dtype: np.dtype[Any]) -> Scalar | None:
    """Return the type of an array's elements in the program; None for records, complex numbers and texts,
    whose fields, parts and characters are accessed.

    Raises LaunchError for an unsupported type.
    """
    if dtype in COMPLEX.values() or dtype.names is not None or dtype.subdtype is not None or dtype.kind in "SU":
        return None
    if dtype.kind in "mM":
        return I64
    scalar = from_dtype(dtype)
    if not isinstance(scalar, Scalar):
        raise LaunchError(f"an array of {dtype} is not supported")
    return U8 if scalar is BOOL else scalar
