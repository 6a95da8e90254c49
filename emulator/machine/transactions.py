"""Memory transactions of warp accesses on a device: `coalescing` for global memory, `banks` for shared memory.

`engines.llvm.counters` emits the same rules as LLVM code. tests/machine/test_emitted_rules.py compares both for random
addresses, lane masks, strides and devices.
"""

from __future__ import annotations

from . import banks, coalescing
from .coalescing import Active, Index, Totals
from .device import Device


def count(space: str, operation: str, index: Index, active: Active, size: int, device: Device, out: Totals) -> None:
    """Add requests, then sectors and lines of global memory, or wavefronts and conflicts of shared memory, to `out`, int64[3].

    operation: an `ir.access.Operation`. index: integers[warps, 32], elements of `size` bytes, of shared memory from its start.
    active: bool[warps, 32].
    """
    if space == "shared":
        kind = banks.kind_of(operation, device)
        banks.count(kind, index, active, size, device.banks, device.bank_width, out)
        return
    sector = device.load_sector if operation == "load" else device.sector
    counted = coalescing.count if operation in ("load", "store") else coalescing.count_atomic
    counted(index, active, size, sector, device.line, out)
