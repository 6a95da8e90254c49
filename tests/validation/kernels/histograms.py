"""Counting and atomic operations: matched lanes, every kind of atomic, a hash table, a Bloom filter."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, i32, i64, u32, u64

from .kernel import Args, ValidationKernel, Values, cover, draw, ints, words, zeros


@st.kernel
def histogram_matched(x: Global[i32], out: Global[i32]) -> None:
    """Lanes with equal numbers are combined: one atomic with their count."""
    value = x[st.block.x * st.block_dim.x + st.thread.x]
    alike = st.match_any(value)
    if alike & st.lanemask_lt() == u32(0):
        st.atomic_add(out, value, st.popcount(alike))


@st.kernel
def atomics_global(x: Global[i32], at: Global[i32], out: Global[i32], n: i32, SLOTS: Const) -> None:
    """Every order-independent kind, each on SLOTS numbers of its own."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        value, slot = x[i], at[i]
        st.atomic_add(out, slot, value)
        st.atomic_sub(out, SLOTS + slot, value)
        st.atomic_min(out, 2 * SLOTS + slot, value)
        st.atomic_max(out, 3 * SLOTS + slot, value)
        st.atomic_and(out, 4 * SLOTS + slot, value)
        st.atomic_or(out, 5 * SLOTS + slot, value)
        st.atomic_xor(out, 6 * SLOTS + slot, value)


@st.kernel
def atomics_shared(x: Global[i32], at: Global[i32], out: Global[i32], SLOTS: Const) -> None:
    """The same in shared memory, with results, and the table of each block."""
    table = st.shared(i32, 7 * SLOTS)
    for s in range(st.thread.x, 7 * SLOTS, st.block_dim.x):
        table[s] = -1 if s // SLOTS == 4 else 0
    st.sync()
    i = st.block.x * st.block_dim.x + st.thread.x
    value, slot = x[i], at[i]
    seen = st.atomic_add(table, slot, value)
    seen |= st.atomic_sub(table, SLOTS + slot, value)
    seen |= st.atomic_min(table, 2 * SLOTS + slot, value)
    seen |= st.atomic_max(table, 3 * SLOTS + slot, value)
    seen |= st.atomic_and(table, 4 * SLOTS + slot, value)
    seen |= st.atomic_or(table, 5 * SLOTS + slot, value)
    seen |= st.atomic_xor(table, 6 * SLOTS + slot, value)
    st.sync()
    if seen != 1 << 30:
        for s in range(st.thread.x, 7 * SLOTS, st.block_dim.x):
            out[st.block.x * 7 * SLOTS + s] = table[s]


@st.kernel
def ring_counters(at: Global[i32], up: Global[u32], down: Global[u32], n: i32, limit: u32) -> None:
    """Counters that begin again after `limit`."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        st.atomic_inc(up, at[i], limit)
        st.atomic_dec(down, at[i], limit)


@st.kernel
def wide_atomics(x: Global[i64], at: Global[i32], out: Global[i64], n: i32, SLOTS: Const) -> None:
    """Sums and maxima of 8 bytes."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        st.atomic_add(out, at[i], x[i])
        st.atomic_max(out, SLOTS + at[i], x[i])


@st.device
def home(key: u32, MASK: Const) -> i32:
    """Return the first slot of the search for a key."""
    mixed = (key ^ (key >> 16)) * u32(0x7FEB352D)
    slot: i32 = i32(mixed >> 7) & MASK
    return slot


@st.kernel
def hash_insert(keys: Global[u32], table: Global[u32], n: i32, MASK: Const) -> None:
    """Each key to the first free slot from its home on, by compare-and-swap; 0 is free."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        key = keys[i]
        slot = home(key, MASK)
        while True:
            old = st.compare_swap(table, slot, u32(0), key)
            if old == u32(0) or old == key:
                break
            slot = (slot + 1) & MASK


@st.kernel
def bloom_filter(keys: Global[u32], bits: Global[u64], n: i32, WORDS: Const) -> None:
    """Three bits of each key set."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        mixed = keys[i]
        for _ in st.unroll(range(3)):
            mixed = mixed * u32(0x9E3779B1) + u32(0x85EBCA6B)
            bit = mixed >> u32(8)
            st.atomic_or(bits, i32((bit >> u32(6)) & u32(WORDS - 1)), u64(1) << u64(bit & u32(63)))


# ------------------------------------------------------------------ launches
def _binned(n: int, bins: int) -> Args:
    return {"x": ints(n, bins), "out": zeros(bins, np.int32)}


def _counts(args: Args) -> dict[str, Values]:
    return {"out": np.bincount(args["x"], minlength=len(args["out"]))}


SLOTS = 64


def _kinds(n: int, block: int) -> Args:
    out = np.zeros(7 * SLOTS, np.int32)
    out[4 * SLOTS : 5 * SLOTS] = -1
    return {"x": ints(n, 1 << 20), "at": ints(n, SLOTS), "out": out, "n": n, "SLOTS": SLOTS}


def _tables(x: Values, at: Values) -> Values:
    table = np.zeros((7, SLOTS), np.int32)
    table[4] = -1
    kinds = (np.add, np.subtract, np.minimum, np.maximum, np.bitwise_and, np.bitwise_or, np.bitwise_xor)
    for row, kind in zip(table, kinds, strict=True):
        kind.at(row, at, x)
    return table.ravel()


def _kinds_shared(n: int, block: int) -> Args:
    return {"x": ints(n, 1 << 20), "at": ints(n, SLOTS), "out": zeros(n // block * 7 * SLOTS, np.int32), "SLOTS": SLOTS}


def _tables_of_blocks(args: Args) -> dict[str, Values]:
    blocks = len(args["out"]) // (7 * SLOTS)
    pairs = zip(np.split(args["x"], blocks), np.split(args["at"], blocks), strict=True)
    return {"out": np.concatenate([_tables(x, at) for x, at in pairs])}


def _rings(n: int, block: int) -> Args:
    return {"at": ints(n, 100), "up": zeros(100, np.uint32), "down": zeros(100, np.uint32), "n": n, "limit": 6}


def _ringed(args: Args) -> dict[str, Values]:
    counts = np.bincount(args["at"], minlength=100)
    return {"up": counts % 7, "down": -counts % 7}


def _wide(n: int, block: int) -> Args:
    return {"x": ints(n, 1 << 40, np.int64), "at": ints(n, 1000), "out": zeros(2000, np.int64), "n": n, "SLOTS": 1000}


def _widened(args: Args) -> dict[str, Values]:
    out = np.zeros((2, 1000), np.int64)
    np.add.at(out[0], args["at"], args["x"])
    np.maximum.at(out[1], args["at"], args["x"])
    return {"out": out.ravel()}


def _keys(n: int) -> tuple[Values, int]:
    """Keys above 0, each once, and the slots of a table twice as large less 1."""
    keys = np.unique(np.maximum(words(n + n // 8 + 16), 1))[: n + 1]
    return draw().permutation(keys)[:n], (1 << (2 * n - 1).bit_length()) - 1


def _insertion(n: int, block: int) -> Args:
    keys, mask = _keys(n)
    return {"keys": keys, "table": zeros(mask + 1, np.uint32), "n": n, "MASK": mask}


def _bloom(n: int, block: int) -> Args:
    return {"keys": words(n), "bits": zeros(1 << 14, np.uint64), "n": n, "WORDS": 1 << 14}


def _bloomed(args: Args) -> dict[str, Values]:
    bits, mixed = args["bits"].copy(), args["keys"]
    for _ in range(3):
        mixed = mixed * np.uint32(0x9E3779B1) + np.uint32(0x85EBCA6B)
        bit = mixed >> np.uint32(8)
        at = (bit >> np.uint32(6)) & np.uint32(len(bits) - 1)
        np.bitwise_or.at(bits, at, np.uint64(1) << (bit & np.uint32(63)).astype(np.uint64))
    return {"bits": bits}


BLOCKS = (64, 256, 1024)

KERNELS = (
    ValidationKernel(histogram_matched, lambda n, b: n // b, lambda n, b: _binned(n, 64), _counts, (1024, 128), (1 << 20,), BLOCKS),
    ValidationKernel(
        atomics_global, cover, _kinds, lambda a: {"out": _tables(a["x"], a["at"])}, (500, 128), (1 << 17,), BLOCKS,
    ),
    ValidationKernel(atomics_shared, lambda n, b: n // b, _kinds_shared, _tables_of_blocks, (512, 128), (1 << 17,), BLOCKS),
    ValidationKernel(ring_counters, cover, _rings, _ringed, (500, 128), (1 << 18,), BLOCKS),
    ValidationKernel(wide_atomics, cover, _wide, _widened, (500, 128), (1 << 18,), BLOCKS),
    ValidationKernel(
        hash_insert, cover, _insertion, lambda a: {"table": a["keys"]}, (500, 128), (1 << 17, 1 << 20), BLOCKS, ("table",), ("table",),
    ),
    ValidationKernel(bloom_filter, cover, _bloom, _bloomed, (500, 128), (1 << 18,), BLOCKS),
)  # fmt: skip
