"""Tensor cores: matrix multiply-accumulates of a warp or of a warpgroup, and moves of 8x8 matrices between shared memory and fragments.

A fragment is a vector of registers in each of the 32 lanes of a warp. All 32 lanes execute these functions together. A warpgroup is
four warps, the first one a multiple of 4; they execute the functions of `wgmma` together.
"""

from typing import Any, TypeVar

from .forms import AsyncWaitForm, DescriptorForm, EffectForm, MatrixForm, MmaForm, WgmmaForm
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


@intrinsic(WgmmaForm())
def wgmma(
    d: Array[Any],
    a: Any,
    b: tuple[Array[Any], int],
    shape: str,
    type: str,
    add: bool = True,
    transposed: str = "",
    negative: bool = False,
) -> None:
    """D = A B + D of a warpgroup, or A B without `add`, asynchronously: D has its value after a `wgmma_wait`.

    shape: "m64n128k16" of A [64, 16], B [16, 128], D [64, 128]. type: of the elements of A and B, as in `mma`: all but "f64"; the last
    extent has 32 bytes. d: a register array, of f32, of i32, or of u32 with two f16 sums each. Warp w of the warpgroup has the rows
    16 w ... 16 w + 15: with the layout of `mma` for each 8 columns, one after the other. a: the fragment of `mma` of these rows; or, as b,
    an array in shared memory and a `matrix_descriptor`. K is contiguous in memory; with transposed = "a", "b" or "ab", for types of 16
    bits, it is M of A or N of B. negative: subtract the product. Needs compute capability 9.0.
    """


@intrinsic(DescriptorForm())
def matrix_descriptor(offset: int, leading: int, stride: int, swizzle: int = 0) -> int:
    """The u64 descriptor of a matrix in shared memory for `wgmma`. All offsets are multiples of 16 bytes.

    offset: of the first element, bytes from the start of the array. A matrix consists of blocks of 8 rows of 16 bytes. swizzle: 0 for
    contiguous blocks; 32, 64 or 128 for rows of so many bytes, whose 16-byte chunks are exchanged: the bits of the offset from 16 on,
    below the swizzle, are XORed with those from 128 on. stride: bytes between blocks of 8 rows. leading: bytes between
    blocks side by side; with a swizzle, between rows of blocks if transposed, else unused. Transposed without a swizzle, the two are
    exchanged.
    Adding bytes / 16 to the descriptor moves the matrix.
    """


@intrinsic(EffectForm("AsyncOrder", mode="fence"))
def wgmma_fence() -> None:
    """Order the warpgroup's earlier accesses to registers before its later `wgmma`. Needs compute capability 9.0."""


@intrinsic(EffectForm("AsyncOrder", mode="commit"))
def wgmma_commit() -> None:
    """Commit the warpgroup's `wgmma` since the last `wgmma_commit` as a group. Needs compute capability 9.0."""


@intrinsic(AsyncWaitForm("wait"))
def wgmma_wait(pending: int = 0) -> None:
    """Wait until at most the last `pending` groups of `wgmma`, 0 to 8, are incomplete. Needs compute capability 9.0."""


@intrinsic(EffectForm("AsyncOrder", mode="proxy"))
def fence_async() -> None:
    """Order the thread's earlier writes to shared memory before accesses of the asynchronous proxy, as those of `wgmma`.

    A barrier must follow before other threads' `wgmma`. Needs compute capability 9.0.
    """


__all__ = [
    "fence_async",
    "load_matrix",
    "matrix_descriptor",
    "mma",
    "move_matrix",
    "store_matrix",
    "wgmma",
    "wgmma_commit",
    "wgmma_fence",
    "wgmma_wait",
]
