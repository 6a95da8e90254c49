"""`torch.cuda` of one emulated GPU. Work is complete when a function returns, so that streams have no queues."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from functools import partial
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
        clock_rate=own.clock * 1000, max_threads_per_block=own.threads_per_block,
    )  # fmt: skip


class EmulatedGenerator(torch.Generator):  # type: ignore[misc, unused-ignore]
    """`torch.Generator`. That of a GPU has a seed and an offset as its state, of 16 bytes; its numbers are those of the host's."""

    def __new__(cls, device: Any = "cpu") -> Any:
        return super().__new__(cls, "cpu")  # type: ignore[call-arg, unused-ignore]

    def __init__(self, device: Any = "cpu") -> None:
        self.own_device, self.offset = torch.device(device), 0

    device: Any = property(lambda self: self.own_device)

    def manual_seed(self, seed: int) -> Any:
        self.offset = 0
        return super().manual_seed(seed)

    def get_state(self) -> Any:
        if self.own_device.type == "cpu":
            return super().get_state()
        return torch.tensor([self.initial_seed(), self.offset]).view(torch.uint8)

    def set_state(self, state: Any) -> Any:
        if self.own_device.type == "cpu":
            return super().set_state(state)
        seed, offset = state.view(torch.int64).tolist()
        self.manual_seed(seed)
        self.offset = offset
        return self


_CONSTANTS: tuple[tuple[object, tuple[str, ...]], ...] = (
    (True, ("is_available", "is_initialized", "is_bf16_supported", "is_tf32_supported")),
    (False, ("is_current_stream_capturing", "can_device_access_peer", "_is_in_bad_fork")),
    (0, (
        "current_device", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "utilization",
        "_get_device_index", "_exchange_device", "_maybe_exchange_device",
    )),
    (1, ("device_count",)),
    ("", ("memory_summary",)),
    (EmulatedStream(), ("current_stream", "default_stream", "get_stream_from_external")),
    (None, (
        "init", "_lazy_init", "synchronize", "set_device", "set_stream", "empty_cache", "ipc_collect", "reset_peak_memory_stats",
        "reset_max_memory_allocated", "reset_accumulated_memory_stats", "set_per_process_memory_fraction",
    )),
)  # fmt: skip
"""Results of functions by name."""
_OF_DEVICE: Mapping[str, Callable[[], Any]] = {
    "get_device_name": lambda: _properties().name,
    "get_device_properties": lambda: _properties(),
    "get_device_capability": lambda: current_device().compute_capability,
    "mem_get_info": lambda: (memory_of_process(),) * 2,
    "memory_stats": dict,
    "get_arch_list": lambda: ["sm_{}{}".format(*current_device().compute_capability)],
}
_CONTEXTS = ("stream", "device", "device_of", "StreamContext")


def _function(name: str, value: Callable[[], Any]) -> Callable[..., Any]:
    """Return a function of any arguments. Each name has its own: PyTorch's compiler keeps a rule for each function."""

    def function(*arguments: Any, **options: Any) -> Any:
        return value()

    function.__name__ = name
    return function


def _context(name: str) -> Callable[..., Any]:
    def context(*arguments: Any) -> Any:
        yield

    context.__name__ = name
    return contextmanager(context)


def _names() -> Mapping[str, Any]:
    """Return the functions and classes of `torch.cuda`."""
    generator = EmulatedGenerator("cuda")

    def manual_seed(seed: int) -> None:
        generator.manual_seed(seed)
        torch.default_generator.manual_seed(seed)

    return {
        **{name: _function(name, partial(lambda own: own, value)) for value, names in _CONSTANTS for name in names},
        **{name: _function(name, value) for name, value in _OF_DEVICE.items()},
        **{name: _context(name) for name in _CONTEXTS},
        "Stream": EmulatedStream, "ExternalStream": EmulatedStream, "Event": EmulatedEvent,
        "manual_seed": manual_seed, "manual_seed_all": partial(manual_seed), "default_generators": (generator,),
        "seed": lambda: manual_seed(torch.seed()), "seed_all": lambda: manual_seed(torch.seed()),
        "initial_seed": lambda: generator.initial_seed(), "get_rng_state": lambda device=None: generator.get_state(),
        "set_rng_state": lambda state, device=None: generator.set_state(state),
    }  # fmt: skip


def replace_functions() -> None:
    """Replace the functions and classes of `torch.cuda`, and `torch.Generator`."""
    vars(torch.cuda).update(_names())
    torch.version.cuda = "13.0"
    vars(torch)["Generator"] = EmulatedGenerator
    vars(torch._C)["_cuda_getCurrentRawStream"] = _function("_cuda_getCurrentRawStream", lambda: 0)
    guards = torch._C._dynamo.guards  # of the code that PyTorch's compiler writes
    vars(guards)["_empty_strided_cuda"] = lambda size, stride, dtype: torch.empty_strided(
        size, stride, dtype=dtype, device="cuda"
    )
    marks = ("rangePushA", "rangePop", "rangeStartA", "rangeEnd", "markA")
    vars(torch.cuda.nvtx)["_nvtx"] = SimpleNamespace(**{name: _function(name, lambda: 0) for name in marks})
