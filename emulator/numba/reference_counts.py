"""The runtime of Numba's reference counting. Kernels that allocate are refused, so that its memory system has no allocations."""

from typing import Any

from numba.cuda.memory_management import nrt

_COUNTS = ("alloc", "free", "mi_alloc", "mi_free")


def replace_runtime() -> None:
    """Replace the kernels of the memory system, which NVRTC compiles, by its state on the host."""
    enabled: list[None] = []
    runtime = nrt._Runtime

    def enable(self: Any, stream: Any = None) -> None:
        enabled[:] = [None]

    def disable(self: Any, stream: Any = None) -> None:
        enabled.clear()

    def statistic(self: Any, stream: Any = None) -> int:
        if not enabled:
            raise RuntimeError("NRT stats are disabled.")
        return 0

    def statistics(self: Any, stream: Any = None) -> Any:
        return nrt._nrt_mstats(**{name: statistic(self) for name in _COUNTS})

    def nothing(self: Any, *args: Any, **options: Any) -> None:
        """The state has no memory on the device."""

    runtime.ensure_allocated = runtime.allocate = runtime.ensure_initialized = runtime.initialize = nothing
    runtime.set_memsys_to_module = nothing
    runtime.memsys_enable_stats, runtime.memsys_disable_stats = enable, disable
    runtime.memsys_stats_enabled = lambda self, stream=None: bool(enabled)
    runtime.get_allocation_stats = statistics
    for name in _COUNTS:
        setattr(runtime, f"memsys_get_stats_{name}", statistic)
