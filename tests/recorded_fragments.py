"""Results of an H200's tensor cores, and registers of fragments.

h200_tensor_cores.npz has two recorded fragments of each of 12 categories a type (normal, all exponents, cancellation, subnormals,
infinities and NaN, one-bit probes ...): bits of A [n, m, k], of B by its columns, of C, and of the results D.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from simtbed.ir.matrices import BITS, INSTRUCTIONS, Instruction, fragment, matrix
from simtbed.language.types import Scalar, Vector

RECORD = np.load(Path(__file__).with_name("h200_tensor_cores.npz"))
Values = npt.NDArray[Any]


def recorded_rows() -> list[tuple[Instruction, str, str]]:
    """Return the recorded instructions, and the names of their C and D."""
    rows = []
    for type, whole in (("f16", 16), ("bf16", 16), ("tf32", 8), ("e4m3", 32), ("e5m2", 32)):
        for k, c, d, total in (
            (whole, "C", "D_mma", "f32"),
            (whole // 2, "C", "D_half", "f32"),
            (whole, "C_sum16", "D_sum16", "f16"),
        ):
            if f"{type}_{d}" in RECORD:
                rows.append((INSTRUCTIONS[f"m16n8k{k}.{total}.{type}.{type}.{total}"], f"{type}_{c}", f"{type}_{d}"))
    return rows


def lanes_of(values: Values, type: Scalar | Vector, width: int) -> Values:
    """Return the registers of a matrix, [n, lanes, registers]."""
    scalar, count = (type.element, type.lanes) if isinstance(type, Vector) else (type, 1)
    blank = [np.zeros(0, scalar.dtype)] * count
    return np.stack(fragment(np.ascontiguousarray(values), blank, width), axis=-1)


def fragments(row: Instruction, *matrices: Values) -> list[Values]:
    """Return the registers of A [n, m, k], B by its columns [n, 8, k], and C."""
    width = max(32 // BITS[row.a], 1)
    return [lanes_of(v, type, w) for v, type, w in zip(matrices, row.types, (width, width, 2), strict=True)]


def result(row: Instruction, registers: Values) -> Values:
    """Return the bits of D [n, m, 8] from its registers."""
    d = registers.reshape(registers.shape[0], 32, -1)
    return matrix([np.ascontiguousarray(d[..., n]) for n in range(d.shape[-1])], row.m, 8, BITS[row.total], 2)
