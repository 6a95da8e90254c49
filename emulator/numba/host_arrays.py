"""Host arrays as arguments of a launch: Numba's own device arrays, copied without cuda.core, whose compiled classes need a GPU."""

from typing import Any

from numba.cuda import args
from numba.cuda.cudadrv import devicearray


def replace_copies() -> None:
    """Replace the copies of the hints `cuda.In`, `cuda.Out` and `cuda.InOut`."""

    def copy_in(self: Any, retr: list[Any], stream: Any = 0) -> Any:
        array, _ = devicearray.auto_device(self.value, stream=stream)
        retr.append(lambda: array)  # the memory exists until the launch has ended
        return array._strided_memory_view_shim

    def copy_out(self: Any, retr: list[Any], stream: Any = 0) -> Any:
        array, is_copy = devicearray.auto_device(self.value, stream=stream, copy=self.copy_input)
        retr.append((lambda: array.copy_to_host(self.value, stream=stream)) if is_copy else lambda: array)
        return array._strided_memory_view_shim

    args.In.to_device = copy_in
    args.Out.to_device = copy_out
