"""Warp matches, reductions and lane masks; clocks and sleep."""

from .forms import EffectForm, LaneMaskForm, MatchAllForm, ReductionForm
from .intrinsics import FULL_MASK, intrinsic


@intrinsic(MatchAllForm())
def match_all(value: int, mask: int = FULL_MASK) -> tuple[int, bool]:
    """(u32, bool): the named lanes and True if all have one value, else 0 and False. Needs compute capability 7.0."""


@intrinsic(ReductionForm("add"))
def reduce_add(value: int, mask: int = FULL_MASK) -> int:
    """Wrapping sum of i32 or u32 over the named lanes. Needs compute capability 8.0."""


@intrinsic(ReductionForm("min"))
def reduce_min(value: int, mask: int = FULL_MASK) -> int:
    """Minimum of i32 or u32 over the named lanes. Needs compute capability 8.0."""


@intrinsic(ReductionForm("max"))
def reduce_max(value: int, mask: int = FULL_MASK) -> int:
    """Maximum of i32 or u32 over the named lanes. Needs compute capability 8.0."""


@intrinsic(ReductionForm("and"))
def reduce_and(value: int, mask: int = FULL_MASK) -> int:
    """Bitwise and of u32 over the named lanes. Needs compute capability 8.0."""


@intrinsic(ReductionForm("or"))
def reduce_or(value: int, mask: int = FULL_MASK) -> int:
    """Bitwise or of u32 over the named lanes. Needs compute capability 8.0."""


@intrinsic(ReductionForm("xor"))
def reduce_xor(value: int, mask: int = FULL_MASK) -> int:
    """Bitwise exclusive or of u32 over the named lanes. Needs compute capability 8.0."""


@intrinsic(LaneMaskForm("lt"))
def lanemask_lt() -> int:
    """u32 mask of the lanes below this one."""


@intrinsic(LaneMaskForm("le"))
def lanemask_le() -> int:
    """u32 mask of the lanes up to this one."""


@intrinsic(LaneMaskForm("eq"))
def lanemask_eq() -> int:
    """u32 mask of this lane."""


@intrinsic(LaneMaskForm("ge"))
def lanemask_ge() -> int:
    """u32 mask of this lane and the lanes above."""


@intrinsic(LaneMaskForm("gt"))
def lanemask_gt() -> int:
    """u32 mask of the lanes above this one."""


@intrinsic(EffectForm("Sleep"))
def nanosleep(nanoseconds: int) -> None:
    """Suspend the thread for about `nanoseconds`, at most a millisecond; no effect in an emulator. Needs compute capability 7.0."""


@intrinsic(EffectForm("Clock", result="i32"))
def clock() -> int:
    """Low 32 bits of the SM's cycle counter, as i32; in an emulator, the number of earlier clock readings of the thread."""


@intrinsic(EffectForm("Clock", result="i64"))
def clock64() -> int:
    """The SM's cycle counter, as i64; in an emulator, the number of earlier clock readings of the thread."""


__all__ = [
    "clock", "clock64", "lanemask_eq", "lanemask_ge", "lanemask_gt", "lanemask_le", "lanemask_lt", "match_all",
    "nanosleep", "reduce_add", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_xor",
]  # fmt: skip
