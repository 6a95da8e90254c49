"""The functions of `observe.history` and `observe.races` for compiled kernels to call, by address.

A kernel gets one table of int64: the addresses of these functions, then the address and the length of each array of
the history.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ....runtime import disk_cache
from ....sanitizer.races import detect, happens_before
from ....sanitizer.races.shadow import PAIR, STATE, RaceState
from .tracking import FUNCTIONS

_signed: Any = np.int64
_carray: Any = numba.carray  # type: ignore[attr-defined]


def _as_pointer(typing: Any, address: Any) -> Any:
    """An address as a pointer."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), generate


_pointer: Any = intrinsic(_as_pointer)


@numba.njit
def _race_state(table: Any) -> RaceState:
    """The history that a table describes."""
    at = len(FUNCTIONS)
    warps = table[at + 15] // 1024
    return RaceState(
        _carray(_pointer(table[at]), STATE, np.int64),
        _carray(_pointer(table[at + 2]), (table[at + 3] // 4, 4), np.int32),
        _carray(_pointer(table[at + 4]), table[at + 5], np.int32),
        _carray(_pointer(table[at + 6]), table[at + 7], np.uint32),
        _carray(_pointer(table[at + 8]), (table[at + 9] // 4, 4), np.int64),
        _carray(_pointer(table[at + 10]), 32, np.uint32),
        _carray(_pointer(table[at + 12]), 32, np.uint32),
        _carray(_pointer(table[at + 14]), (warps, 32, 32), np.int32),
        _carray(_pointer(table[at + 16]), (table[at + 17] // 4, 4), np.int64),
        _carray(_pointer(table[at + 18]), (table[at + 19] // 9, 9), np.int64),
        _carray(_pointer(table[at + 20]), (table[at + 21] // 5, 5), np.int64),
        _carray(_pointer(table[at + 22]), (table[at + 23] // PAIR, PAIR), np.int64),
    )


_TABLE = types.CPointer(types.int64)


@cache
def _functions() -> dict[str, Any]:
    """The functions by name. What they call is in other files, whose edition is part of the key they are kept under."""
    edition = disk_cache.edition()

    def begin_block(table: Any, block: Any) -> None:
        _ = edition
        happens_before.begin_block(_race_state(table), block)

    def barrier(table: Any) -> None:
        _ = edition
        happens_before.barrier(_race_state(table))

    def fence(table: Any, mask: Any, scope: Any) -> None:
        _ = edition
        happens_before.fence(_race_state(table), _signed(mask), scope)

    def join(table: Any, active: Any, alive: Any, masks: Any) -> None:
        _ = edition
        own = _carray(masks, 32).astype(np.int64)
        happens_before.join(_race_state(table), _signed(active), _signed(alive), own)

    def access(table: Any, array: Any, access_id: Any, mask: Any, lanes: Any, parts: Any) -> None:
        """lanes: int64[1 + 2 parts, 32]: the elements, the bits stored, the bits found."""
        _ = edition
        given, race_state = _carray(lanes, (1 + 2 * parts, 32)), _race_state(table)
        now = happens_before.timestamp(race_state, access_id)
        detect.access(
            race_state, array, access_id, now, _signed(mask), given[0], given[1 : 1 + parts], given[1 + parts :]
        )

    word, mask = types.int64, types.uint32
    arguments: dict[Any, tuple[Any, ...]] = {
        begin_block: (word,),
        barrier: (),
        fence: (mask, types.int32),
        join: (mask, mask, types.CPointer(mask)),
        access: (word, word, mask, types.CPointer(word), word),
    }
    compile = {f.__name__: numba.cfunc(types.void(_TABLE, *given), cache=True) for f, given in arguments.items()}
    return {f.__name__: compile[f.__name__](f) for f in arguments}


def table(race_state: RaceState) -> npt.NDArray[np.int64]:
    """The table of a history, which must outlive it."""
    arrays = [(array.ctypes.data, array.size) for array in race_state]
    functions = [_functions()[name].address for name in FUNCTIONS]
    return np.array([*functions, *(number for pair in arrays for number in pair)], np.int64)
