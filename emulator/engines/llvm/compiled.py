"""What running compiled code takes, apart from printing it: its options, its buffers, and how both are kept on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...machine.device import Device
from ...runtime.engine import Dim3
from .counters.slots import Numbers

ENTRY = "run_blocks"
"""The function's name: (arrays and lengths, scalars, first and last block, grid, step limit, buffers, callback) -> i32.
It returns 1 where a loop was cut off and careful text is needed."""


@dataclass(frozen=True)
class Options:
    """What the text depends on besides the program.

    careful: loops that are cut off leave survivors, so no text may count on whole warps.
    atomic: blocks run in several threads, so global atomics must be.
    checks, unwritten: what is looked for, and the global arrays that begin without contents. scheduled: blocks and warps
    are taken in an order given at launch.
    """

    block: Dim3
    device: Device
    dynamic_shared: int
    counters: bool
    careful: bool
    atomic: bool
    checks: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()
    scheduled: bool = False


@dataclass(frozen=True)
class Buffers:
    """What a launch of compiled code gives each thread, and how counts are read from it.

    counts: int64 slots. records: int64 of faults. shared, local, workspace: bytes. sites: rows of the counter table.
    operations: calls of the host, by number, that evaluate a row of the op table: its name and its operands' type.
    table: as `counters.slots.decode` has it.
    """

    counts: int
    records: int
    shared: int
    local: int
    workspace: int
    sites: int
    operations: Mapping[int, tuple[str, str]]
    table: Numbers

    def encode(self) -> bytes:
        """A line of JSON, then the table."""
        sizes = [self.counts, self.records, self.shared, self.local, self.workspace, self.sites]
        return json.dumps([sizes, list(self.operations.items())]).encode() + b"\n" + self.table.tobytes()

    @staticmethod
    def decode(data: bytes) -> Buffers:
        """What `encode` wrote."""
        header, _, table = data.partition(b"\n")
        sizes, operations = json.loads(header)
        named = {number: (op, type) for number, (op, type) in operations}
        counts, records, shared, local, workspace, sites = sizes
        numbers = np.frombuffer(table, np.int64).reshape(-1, 4)
        return Buffers(counts, records, shared, local, workspace, sites, named, numbers)
