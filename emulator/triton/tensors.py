"""PyTorch over one emulated GPU: tensors of the device are tensors of the host without a mark, those of the host have one.

A request for the device `cuda` creates a tensor in the memory of the host. Copies between host and device are copies.
The memory of an `empty` tensor counts as unwritten until a kernel or a function of PyTorch writes it, while the tensor exists.
"""

import gc
import os
import weakref
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from ..driver.memory import AddressSpace, Pointer, pointer_to
from ..runtime.host_findings import note_read
from ..runtime.observing import is_checked
from . import torch_cuda

DEVICE = torch.device("cuda", 0)
HOST = torch.device("cpu")
_MARK = "_simtbed_host"
_EMPTY = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
_VIEWS = {
    "__getitem__", "as_strided", "chunk", "contiguous", "cuda", "detach", "diagonal", "expand", "expand_as", "flatten", "movedim", "narrow",
    "permute", "ravel", "reshape", "select", "split", "squeeze", "swapaxes", "t", "to", "transpose", "unbind", "unflatten", "unsqueeze",
    "view", "view_as",
}  # fmt: skip
"""Functions that access no element if their result shares the memory of the tensor."""
_VALUES = {"__bool__", "__float__", "__format__", "__int__", "__repr__", "allclose", "equal", "item", "tolist"}
"""Functions that read elements, with a result that is no tensor."""
_EXPORTS = {"__array__", "__dlpack__", "numpy"}
"""Functions after which others may write to the memory."""
_OPERATORS = torch._ops.OpOverload, torch._ops.OpOverloadPacket
"""Types of functions that may write to any argument: operators of `torch.ops`."""
_TENSOR: Any = torch.Tensor
_IS_CUDA, _OF_DEVICE = _TENSOR.is_cuda.__get__, _TENSOR.device.__get__


def tensor_of(value: Any) -> Any:
    """Return the tensor of a pointer argument: a tensor, an object with `data_ptr`, or an address; None for None.

    Raises Triton's errors for a tensor of the host and for an object that is no pointer.
    """
    if value is None:
        return None
    if not isinstance(value, _TENSOR | int) and not hasattr(value, "data_ptr"):
        raise TypeError("Pointer argument must be either uint64 or have data_ptr method")
    tensor = value if isinstance(value, _TENSOR) else _tensor_at(value)
    if is_on_host(tensor):
        raise ValueError("Pointer argument cannot be accessed from Triton (cpu tensor?)")
    return tensor


def _tensor_at(value: Any) -> Any:
    """Return a tensor with the address of a pointer: an attribute of the object, else any tensor of the process."""
    address = value if isinstance(value, int) else value.data_ptr()
    objects = (own for values in (getattr(value, "__dict__", {}).values, gc.get_objects) for own in values())
    for own in objects:
        if issubclass(type(own), _TENSOR):
            storage = own.untyped_storage()
            if storage.data_ptr() <= address < storage.data_ptr() + max(storage.nbytes(), 1):
                return own
    raise ValueError(f"Pointer argument cannot be accessed from Triton: no tensor has the address {address:#x}")


def memory_of(value: Any, tensor: Any) -> Pointer:
    """Return the storage of a pointer argument and of its tensor."""
    storage = tensor.untyped_storage()
    address = value if isinstance(value, int) else value.data_ptr()
    return Pointer(address, storage.data_ptr(), storage.nbytes())


EMPTY = AddressSpace()
"""The memory of `empty` tensors with bytes that nothing has written. A program without checkers records none."""


def _record_empty(tensor: Any) -> None:
    """Record that nothing has written the memory of a new tensor."""
    storage = tensor.untyped_storage()
    start, size = storage.data_ptr(), storage.nbytes()
    if is_checked() and size and EMPTY.register(start, size):
        EMPTY.written.allocated(start, size)
        weakref.finalize(tensor, EMPTY.remove, start).atexit = False


def _record_access(function: Any, tensor: Any, address: int, result: Any) -> None:
    """Record the access of a function of PyTorch to the elements of a tensor. A remark names the line that reads unwritten ones.

    address: of the tensor before the call, which may have given it other memory.
    """
    place, name = EMPTY.range_of(address), getattr(function, "__name__", "")
    if place is None or name == "__get__" or name.endswith("_like") or name.startswith("new_"):
        return
    results = _with_memory((result,))
    shares = any(_shares(own, tensor) for own in results)
    if shares and name in _VIEWS:
        return
    in_place = name.endswith("_") and not name.endswith("__")
    if result is None or shares or in_place or isinstance(function, _OPERATORS):
        EMPTY.remove(place[0])
    elif results or name in _VALUES or name in _EXPORTS:
        size = tensor.element_size()
        memory = pointer_to(address, tensor.shape, [step * size for step in tensor.stride()], size)
        if memory.size == tensor.nbytes:  # without gaps
            note_read(EMPTY.written, memory.low, memory.size, name, "a read by PyTorch")
        if name in _EXPORTS:
            EMPTY.remove(place[0])


def is_on_host(tensor: Any) -> bool:
    """Return whether a tensor is one of the host."""
    return _MARK in vars(tensor)


class EmulatedDevice(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    """Redirects requests for `cuda` to the host, and marks tensors of the host."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function is torch.device:
            return function(*args, **kwargs)
        name = getattr(function, "__name__", "")
        tensors = _with_memory((*args, *kwargs.values())) if EMPTY.sizes else []
        accessed = [(own, own.data_ptr()) for own in tensors]
        result = self._redirected(function, args, kwargs)
        for own, address in accessed:
            _record_access(function, own, address, result)
        if name in _EMPTY and isinstance(result, _TENSOR) and not is_on_host(result):
            _record_empty(result)
        return result

    def _redirected(self, function: Any, args: Any, kwargs: Any) -> Any:
        if function == _OF_DEVICE:
            return HOST if is_on_host(args[0]) else DEVICE
        if function == _IS_CUDA:
            return not is_on_host(args[0])
        if function is _TENSOR.get_device:
            return -1 if is_on_host(args[0]) else 0
        if function is _TENSOR.cuda:
            return _moved(args[0], False)
        if function is _TENSOR.cpu:
            return _moved(args[0], True)
        if function is _TENSOR.pin_memory:
            return args[0]
        if function is _TENSOR.record_stream:
            return None
        kwargs.pop("pin_memory", None)
        if isinstance(kwargs.get("device"), int):
            kwargs["device"] = DEVICE
        requested = [own for own in (*args, *kwargs.values()) if _is_device(own)]
        if not requested:
            return _marked(function(*args, **kwargs), _all_on_host(args, kwargs))
        to_host = torch.device(requested[0]).type == "cpu"
        args = tuple(HOST if _is_device(own) else own for own in args)
        kwargs = {name: HOST if _is_device(own) else own for name, own in kwargs.items()}
        result = function(*args, **kwargs)
        if (
            function is _TENSOR.to
            and isinstance(args[0], _TENSOR)
            and is_on_host(args[0]) != to_host
            and _shares(result, args[0])
        ):
            result = result.clone()
        return _marked(result, to_host)


def _is_device(value: Any) -> bool:
    """Return whether an argument is a device."""
    if isinstance(value, torch.device):
        return value.type in ("cuda", "cpu")
    return isinstance(value, str) and value.partition(":")[0] in ("cuda", "cpu")


def _shares(result: Any, source: Any) -> bool:
    return bool(result.untyped_storage().data_ptr() == source.untyped_storage().data_ptr())


def _moved(tensor: Any, to_host: bool) -> Any:
    """Return a tensor on the other side, a copy unless it is there."""
    return tensor if is_on_host(tensor) == to_host else _marked(tensor.clone(), to_host)


def _tensors(values: Any) -> Any:
    for own in values:
        if isinstance(own, _TENSOR):
            yield own
        elif isinstance(own, tuple | list):
            yield from _tensors(own)


def _with_memory(values: Any) -> list[Any]:
    """Return the tensors that are not sparse and have elements."""
    return [own for own in _tensors(values) if own.layout is torch.strided and not own.is_meta]


def _all_on_host(args: Any, kwargs: Any) -> bool:
    """Return whether the result of a function of these arguments is on the host."""
    return all(is_on_host(own) for own in _tensors((*args, *kwargs.values())))


def _marked(result: Any, to_host: bool) -> Any:
    for own in _tensors((result,)):
        if to_host:
            vars(own)[_MARK] = True
        else:
            vars(own).pop(_MARK, None)
    return result


def install() -> None:
    """Emulate a GPU of PyTorch in this process. Functions of `torch.compile` run as they are."""
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    torch_cuda.replace_functions()
    context: Any = DeviceContext  # its own functions insert the mode of a default device under this one
    context.__enter__, context.__exit__ = TorchFunctionMode.__enter__, TorchFunctionMode.__exit__
    mode: Any = EmulatedDevice()
    mode.__enter__()
