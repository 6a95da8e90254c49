"""Operations on the bits and bytes of integers."""

from .forms import OperationForm
from .intrinsics import intrinsic


@intrinsic(OperationForm("popcount"))
def popcount(x: int) -> int:
    """Number of set bits of a 32- or 64-bit integer, as i32."""


@intrinsic(OperationForm("clz"))
def clz(x: int) -> int:
    """Number of leading zero bits of a 32- or 64-bit integer, as i32."""


@intrinsic(OperationForm("ffs"))
def ffs(x: int) -> int:
    """1 + the index of the lowest set bit of a 32- or 64-bit integer, as i32; 0 for 0."""


@intrinsic(OperationForm("brev"))
def brev(x: int) -> int:
    """Bits of a 32- or 64-bit integer in reverse order."""


@intrinsic(OperationForm("mulhi"))
def mulhi(a: int, b: int) -> int:
    """Upper half of the product of two 32- or 64-bit integers."""


@intrinsic(OperationForm("byte_perm"))
def byte_perm(a: int, b: int, selector: int) -> int:
    """u32 of four bytes: byte n is byte `selector >> 4 * n & 7` of the eight bytes of `a`, then `b`."""


@intrinsic(OperationForm("dp4a"))
def dp4a(a: int, b: int, c: int) -> int:
    """c + the dot product of the four bytes of `a` and `b`, signed for i32, unsigned for u32. Needs compute capability 6.1."""


@intrinsic(OperationForm("funnel_shift_left"))
def funnel_shift_left(low: int, high: int, count: int) -> int:
    """Upper half of high:low shifted left by `count` modulo 32, as u32."""


@intrinsic(OperationForm("funnel_shift_right"))
def funnel_shift_right(low: int, high: int, count: int) -> int:
    """Lower half of high:low shifted right by `count` modulo 32, as u32."""


@intrinsic(OperationForm("funnel_shift_left_clamped"))
def funnel_shift_left_clamped(low: int, high: int, count: int) -> int:
    """Upper half of high:low shifted left by `count`, at most 32, as u32."""


@intrinsic(OperationForm("funnel_shift_right_clamped"))
def funnel_shift_right_clamped(low: int, high: int, count: int) -> int:
    """Lower half of high:low shifted right by `count`, at most 32, as u32."""


__all__ = [
    "brev", "byte_perm", "clz", "dp4a", "ffs", "funnel_shift_left", "funnel_shift_left_clamped", "funnel_shift_right",
    "funnel_shift_right_clamped", "mulhi", "popcount",
]  # fmt: skip
