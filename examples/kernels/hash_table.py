"""A hash table with open addressing. The larger key retains the slot: the table is independent of the order."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Keys = npt.NDArray[np.uint32]
Table = npt.NDArray[np.uint64]
THREADS = 128
MISSING = 0xFFFFFFFF


@st.device
def home(key: st.u32, SLOTS: st.Const) -> st.i32:
    """The slot at which the search for a key begins."""
    return st.i32(((key ^ (key >> 15)) * 0x2C1B3C6D >> 8) % SLOTS)


@st.kernel
def insert(keys: st.Global[st.u32], values: st.Global[st.u32], table: st.Global[st.u64], SLOTS: st.Const) -> None:
    """Insert distinct keys above 0 with their values. A slot is key and value in one word, 0 if free."""
    i = st.block.x * THREADS + st.thread.x
    if i < len(keys):
        slot = home(keys[i], SLOTS)
        entry = (st.u64(keys[i]) << 32) | st.u64(values[i])
        while entry != 0:
            entry = min(entry, st.atomic_max(table, slot, entry))
            slot = (slot + 1) % SLOTS


@st.kernel
def look_up(keys: st.Global[st.u32], table: st.Global[st.u64], out: st.Global[st.u32], SLOTS: st.Const) -> None:
    """out[i] = the value of key i, MISSING where it has none."""
    i = st.block.x * THREADS + st.thread.x
    if i < len(keys):
        slot = home(keys[i], SLOTS)
        while st.u32(table[slot] >> 32) > keys[i]:
            slot = (slot + 1) % SLOTS
        out[i] = st.u32(table[slot]) if st.u32(table[slot] >> 32) == keys[i] else MISSING


def built(keys: Keys, values: Keys, slots: int, launch: Callable[..., st.Result] = st.launch) -> Table:
    """The table of the keys. slots: more than keys, a power of two."""
    args = dict(keys=keys, values=values, table=st.zeros(slots, st.u64), SLOTS=slots)
    table: Table = launch(insert, grid=-(-len(keys) // THREADS), block=THREADS, args=args).table
    return table


def look_up_all(keys: Keys, table: Table, launch: Callable[..., st.Result] = st.launch) -> Keys:
    """The value of each key, or MISSING."""
    args = dict(keys=keys, table=table, out=st.empty(len(keys), st.u32), SLOTS=len(table))
    values: Keys = launch(look_up, grid=-(-len(keys) // THREADS), block=THREADS, args=args).out
    return values


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from a dictionary."""
    random = np.random.default_rng(23)
    keys = np.unique(random.integers(1, 2**32 - 1, 400, np.uint32))
    values = random.permutation(len(keys)).astype(np.uint32)
    table = built(keys, values, 512, launch)
    distinct_keys = dict(zip(keys.tolist(), values.tolist(), strict=True))
    queries = np.concatenate([keys, random.integers(1, 2**32 - 1, 100, np.uint32)])
    np.testing.assert_array_equal(
        look_up_all(queries, table, launch), [distinct_keys.get(key, MISSING) for key in queries.tolist()]
    )


if __name__ == "__main__":
    check()
