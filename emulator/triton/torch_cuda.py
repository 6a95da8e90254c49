"""`torch.cuda` of one emulated GPU. Work is complete when a function returns, so that streams have no queues."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch

from ..runtime.memory import memory_of_process
from .devices import current_device


class EmulatedStream:
    """`torch.cuda.Stream`."""

    cuda_stream = 0

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self.device, self.priority = torch.device("cuda", 0), priority

    def synchronize(self) -> None:
        """Return at once."""

    def wait_stream(self, stream: Any) -> None:
        """Return at once."""

    def wait_event(self, event: Any) -> None:
        """Return at once."""

    def query(self) -> bool:
        return True

    def record_event(self, event: Any = None) -> Any:
        event = EmulatedEvent() if event is None else event
        event.record()
        return event

    def __enter__(self) -> EmulatedStream:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: all streams are one."""


class EmulatedEvent:
    """`torch.cuda.Event`: a time of the host. Launches take the time of the emulator."""

    def __init__(self, enable_timing: bool = False, **options: Any) -> None:
        self.time = 0.0

    def record(self, stream: Any = None) -> None:
        self.time = time.perf_counter()

    def elapsed_time(self, end: EmulatedEvent) -> float:
        """Return the milliseconds until another event."""
        return (end.time - self.time) * 1e3

    def synchronize(self) -> None:
        """Return at once."""

    def wait(self, stream: Any = None) -> None:
        """Return at once."""

    def query(self) -> bool:
        return True


def _properties(device: Any = None) -> SimpleNamespace:
    own = current_device()
    major, minor = own.compute_capability
    return SimpleNamespace(
        name=f"simtbed {own.name}", major=major, minor=minor, total_memory=memory_of_process(), multi_processor_count=own.sms, warp_size=32,
        max_threads_per_multi_processor=32 * own.warps_per_sm, regs_per_multiprocessor=own.registers_per_sm,
        shared_memory_per_block=own.shared_per_block, shared_memory_per_block_optin=own.shared_per_block_optin,
        shared_memory_per_multiprocessor=own.shared_per_sm, L2_cache_size=own.l2, is_integrated=False, is_multi_gpu_board=False,
    )  # fmt: skip


@contextmanager
def _nothing(*arguments: Any) -> Any:
    yield


def _returning(value: Any) -> Callable[..., Any]:
    return lambda *arguments, **options: value


def _names() -> Mapping[str, Any]:
    stream = EmulatedStream()
    return {
        "is_available": _returning(True), "is_initialized": _returning(True), "device_count": _returning(1),
        "current_device": _returning(0),
        "get_device_name": lambda device=None: _properties().name, "get_device_properties": _properties,
        "get_device_capability": lambda device=None: current_device().compute_capability, "is_bf16_supported": _returning(True),
        "memory_allocated": _returning(0), "max_memory_allocated": _returning(0), "memory_reserved": _returning(0),
        "max_memory_reserved": _returning(0), "mem_get_info": lambda device=None: (memory_of_process(),) * 2,
        "current_stream": _returning(stream), "default_stream": _returning(stream), "stream": _nothing, "device": _nothing,
        "device_of": _nothing,
        "Stream": EmulatedStream, "ExternalStream": EmulatedStream, "Event": EmulatedEvent,
        **dict.fromkeys(("manual_seed", "manual_seed_all"), torch.default_generator.manual_seed),
        **dict.fromkeys(("seed", "seed_all"), torch.default_generator.seed), "initial_seed": torch.initial_seed,
        **dict.fromkeys(
            ("init", "_lazy_init", "synchronize", "set_device", "set_stream", "empty_cache", "reset_peak_memory_stats", "ipc_collect"),
            _returning(None),
        ),
    }  # fmt: skip


def replace_functions() -> None:
    """Replace the functions and classes of `torch.cuda`."""
    vars(torch.cuda).update(_names())
    torch.version.cuda = "13.0"
