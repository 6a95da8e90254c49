"""Tensor cores: matrix multiply-accumulates of a warp, and moves of 8x8 matrices between shared memory and fragments.

A fragment is a vector of registers in each of the 32 lanes of a warp. All 32 lanes execute these functions together.
"""

from __future__ import annotations

from typing import Any, TypeVar

from .forms import MatrixForm, MmaForm
from .hints import Array
from .intrinsics import intrinsic

T = TypeVar("T")


@intrinsic(MmaForm())
def mma(a: Any, b: Any, c: T, shape: str, type: str) -> T:
    """A B + C of a warp, with the arithmetic of the tensor cores of the device.

    shape: "m16n8k16" of A [16, 16], B [16, 8], C [16, 8]. type: of the elements of A and B: "f16", "bf16", "tf32", "f64", "e4m3",
    "e5m2", "s8" or "u8"; "u8.s8" for two types. a, b: registers of 32 bits (u32, uint2, uint4), each with 1, 2 or 4 elements of a
    row of A, or of a column of B, from the low bits on; f64 numbers. c: float4, int2, int4 or double2; uint2 with f16 sums.
    With w elements in a register, lane 4 (row % 8) + column % (4 w) // w holds A[row, column], in register
    row // 8 + (rows // 8) (column // (4 w)). B has the layout of A for its columns. Of C and the result, lane 4 (row % 8) + column // 2
    holds the element, with number 2 (row // 8) + column % 2. Needs compute capability 7.5, 8.0 or 8.9.
    """


@intrinsic(MatrixForm("load"))
def load_matrix(shared: Array[Any], index: int | tuple[int, ...], count: int = 4, transposed: bool = False) -> Any:
    """Registers of `count` 8x8 matrices of 16-bit elements: u32, uint2 or uint4, one register a matrix.

    Lane 8 i + r gives the index in `shared` of row r of matrix i, 16 bytes at a multiple of 16 bytes. Lane 4 r + j receives the elements
    2 j and 2 j + 1 of row r; with `transposed`, of column r. Needs compute capability 7.5.
    """


@intrinsic(MatrixForm("store"))
def store_matrix(shared: Array[Any], index: int | tuple[int, ...], value: Any, transposed: bool = False) -> None:
    """Store the registers of 1, 2 or 4 matrices, the inverse of `load_matrix`. Needs compute capability 9.0."""


@intrinsic(MatrixForm("move"))
def move_matrix(value: int) -> int:
    """The register of the transposed 8x8 matrix of 16-bit elements. Needs compute capability 7.5."""


__all__ = ["load_matrix", "mma", "move_matrix", "store_matrix"]
