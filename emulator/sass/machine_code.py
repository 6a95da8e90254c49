"""Machine code of a kernel: compiled from its translation, kept on disk, executed on a state."""

from __future__ import annotations

import ctypes
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import disk_cache
from ..ir.tensor_cores import parameters
from ..llvm.compiler import PROMOTED, Library, compiled, load_compiled
from ..machine import banks, coalescing
from ..machine.device import Device, log2
from .batch import Batch
from .bulk_copy import copy_box, copy_units
from .collectives import exchange
from .convergence import begin_run, end_run
from .counts import Counts
from .groups import PATH_ENTRIES
from .machine import BANKS, FIELDS, OPERATIONS
from .moves import move_elements, places
from .phases import log_phase
from .state import FAILURES, failed
from .steps import Step
from .translation import ENTRY, WILD, module_of
from .warpgroups import PRODUCT, PRODUCTS, product_of

_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


@dataclass(frozen=True)
class MachineCode:
    """Compiled code. starts: instructions where translated runs start. constants: bytes of each constant bank it reads."""

    steps: Sequence[Step]
    library: Library
    starts: frozenset[int]
    constants: dict[int, int]

    @staticmethod
    def compile(steps: Sequence[Step]) -> MachineCode:
        """Compile a program, and keep its code on disk."""
        metadata, library = compiled(_key(steps), lambda: module_of(steps), ENTRY, json.loads, passes=PROMOTED)
        return MachineCode._from_metadata(steps, metadata, library)

    @staticmethod
    def load(steps: Sequence[Step]) -> MachineCode | None:
        """Return the code of a program from the disk cache."""
        loaded = load_compiled(_key(steps), ENTRY, json.loads, passes=PROMOTED)
        return None if loaded is None else MachineCode._from_metadata(steps, *loaded)

    @staticmethod
    def _from_metadata(steps: Sequence[Step], metadata: Any, library: Library) -> MachineCode:
        starts, constants = metadata
        return MachineCode(steps, library, frozenset(starts), dict(constants))

    def bind(self, batch: Batch, counts: Counts) -> BoundCode | None:
        """Return the code for a batch of blocks; None if a constant bank is missing or nothing is translated."""
        if not self.starts or any(
            len(batch.state.banks.get(bank, b"")) < size for bank, size in self.constants.items()
        ):
            return None
        return BoundCode(self, batch, counts)


def _key(steps: Sequence[Step]) -> tuple[str, ...]:
    listing = "\n".join(f"{step.op.instruction.text} {step.op.immediate:x}" for step in steps)
    return ("sass", hashlib.sha256(listing.encode()).hexdigest(), disk_cache.edition())


def _products(steps: Sequence[Step], device: Device) -> Any:
    """Return the numbers of the products of matrices for their functions of `maths.tensor_cores`, int64[instruction, PRODUCT]; no row for
    a program without products."""
    products = [n for n, step in enumerate(steps) if step.op.opcode in PRODUCTS and step.execute is not None]
    result = np.zeros((max(products, default=-1) + 1, PRODUCT), np.int64)
    for n in products:
        _, numbers = parameters(product_of(steps[n].op), device.compute_capability)
        result[n, : len(numbers)] = numbers
    return result


class BoundCode:
    """Machine code with the addresses of a state and of counts."""

    def __init__(self, code: MachineCode, batch: Batch, counts: Counts) -> None:
        self.code, self.batch = code, batch
        state, groups = batch.state, batch.groups._asdict()
        self.wild = np.zeros(2, np.uint64)  # an address, and 1 + the number of a failure
        function, self.trace_arguments = (0, np.zeros(1, np.int64)) if counts.trace is None else counts.trace.function
        device = counts.device
        self.shapes = np.stack([banks.shape_of(1 << log, device.banks, device.bank_width) for log in range(5)])
        kinds = [banks.kind_of(name if name != "reduction" else "atomic", device) for name in OPERATIONS]
        self.kinds, self.bank_load = np.array(kinds), np.zeros(device.banks * device.bank_width, np.int64)
        local = state.local if any(step.op.opcode in ("LDL", "STL") for step in code.steps) else np.zeros(0, np.uint8)
        self.products, self.places = _products(code.steps, device), places()
        present = {number: state.bank(number) for number in state.banks}
        arrays: dict[str, Any] = {
            "registers": state.registers, "uniform_registers": state.uniform_registers, "predicates": state.predicates,
            "uniform_predicates": state.uniform_predicates, "special": state.special_values,
            "global": state.memory.contents, "owned": state.memory.owned,
            "shared": state.shared, "local": local,
            "block_of_warp": state.block_of_warp, "first_of_cluster": state.first_of_cluster, "barrier_results": state.barrier_results,
            "wild": self.wild, "bank_shapes": self.shapes, "bank_kinds": self.kinds, "bank_load": self.bank_load,
            "products": self.products, "places": self.places, "units": state.units, "phases_of_words": state.phases.phases,
            "phase_events": state.phases.events, "phase_count": state.phases.size,
            "traffic": counts.traffic, "active": counts.active, "trace_arguments": self.trace_arguments,
            **{f"bank{number}": bank for number, bank in present.items()}, "table": batch.table, "rows": batch.rows,
            "row_lanes": batch.active, "chosen": batch.chosen, "values": batch.values, "awaited_threads": batch.awaited_threads,
            **{name: one for name, one in groups.items() if isinstance(one, np.ndarray)},
        }  # fmt: skip
        numbers = {
            "register_bytes": state.registers.strides[0], "uniform_register_bytes": state.uniform_registers.strides[0],
            "predicate_bytes": state.predicates.strides[0], "special_bytes": state.special_values.strides[0],
            "uniform_predicate_bytes": state.uniform_predicates.strides[0], "global_size": state.memory.contents.size,
            "shared_size": state.shared.size, "shared_bytes": state.shared_bytes, "local_size": local.size,
            "cluster_blocks": state.cluster_blocks,
            "exchange": exchange.address(), "copy_units": copy_units.address(), "copy_box": copy_box.address(),
            "move_elements": move_elements.address(), "log_phase": log_phase.address(), "phase_capacity": state.phases.capacity,
            "count_global": coalescing.count_warps.address(),
            "count_atomic": coalescing.count_packets.address(), "count_shared": banks.count_warps.address(),
            "trace": function, "load_sector": log2(device.load_sector), "sector": log2(device.sector), "line": log2(device.line),
            **{f"bank{number}_size": bank.size for number, bank in present.items()}, "begin_run": begin_run.address(),
            "end_run": end_run.address(), **{name: one for name, one in groups.items() if isinstance(one, int)},
        }  # fmt: skip
        addresses = {name: array.ctypes.data for name, array in arrays.items()}
        absent = dict.fromkeys((f"bank{n}{suffix}" for n in range(BANKS) for suffix in ("", "_size")), 0)
        fields = absent | addresses | numbers
        self.fields = np.array([fields[name] for name in FIELDS], np.int64)
        self.call = _CALL(code.library.address)

    def run(self) -> int:
        """Execute runs. Return FINISHED, PAUSED, or the first instruction of a started run that is to be interpreted.
        Raises ExecutionError."""
        self.batch.pause_after(1 + PATH_ENTRIES // self.batch.state.warps)
        result = int(self.call(self.fields.ctypes.data))
        if result <= WILD:
            op, (address, failure) = self.code.steps[WILD - result].op, self.wild.tolist()
            raise failed(op, FAILURES[failure - 1]) if failure else self.batch.state.wild_address(op, address)
        return result
