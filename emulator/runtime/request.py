"""Validation of launch arguments: from the caller's values to a request with checked types, sizes and limits."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np

from ..checked import counted, one_of, shown, truth, whole, within_stack
from ..errors import LaunchError
from ..frontend.launchable import LaunchableKernel
from ..language.types import Array
from ..machine import device as devices
from ..machine.device import Device
from .argument_binding import bind_arguments, require_names
from .array_views import argument as argument_of
from .array_views import check_aliases
from .arrays import Buffer, DeviceArray, NewArray, flags_of_elements
from .common_memory import check_overlap, check_writeable
from .counter_limits import wrapping_loops
from .engine import MATHS, MAX_ITERATIONS, Dim3, Maths, Request
from .foreign_arrays import as_number
from .refusals import Refusals
from .registry import EngineName
from .specialisation import AnyKernel, bound, signature_of
from .streams import Stream


@dataclass(slots=True, kw_only=True)
class LaunchOptions:
    """The options of `launch`, which passes its keywords on: the only list of them.

    Parameters
    ----------
    grid, block : one to three extents.
    args : every argument by name, or in the order of the parameters. A global array is a NumPy
        array of exactly the element's dtype, with 1 to 5 dimensions (a vector's lanes in the last
        axis), neither modified nor copied; or `empty`, `zeros`, `full`, or a `DeviceArray`.
        Numbers must be in range. Const: int, float, bool, tuples of them.
    engine : "jit" (compiled) and "numpy" emulate, with equal outputs, counters and faults;
        "python" runs to the first fault; "cuda" on a GPU, without checks; both without counters.
    device : one of `st.devices`, its name, or a TOML file. types : as {"Real": "f32"}.
    shared : bytes of dynamic shared memory. counters : whether to count.
    detail : whether to record examples of accesses. compiled : whether to copy the arrays
        before the launch, for `Result.compiled`.
    step_limit : iterations of one execution of a loop; by default 10,000 for a loop that only waits, else 2**32.
    check : "all", or some of "bounds", "alignment", "uninitialised", "races", "barriers",
        "arithmetic", "wgmma", "mbarrier", "acquire" (also reads of released data without acquire) and, not in "all",
        "benign" (also races that write the same value) and "nan". Blocks run in sequence for races
        and uninitialised reads. A line with `# simtbed: allow race - reason` is exempt.
    schedule : number of another order of blocks and warps for a second run; a difference is a
        fault. schedules : of that many orders, the first with a difference or finding is reported.
    cooperative : blocks may wait at `grid_sync`. cluster : blocks of a cluster, one to three extents.
    in_place : arrays are modified, and may overlap.
    maths : functions on a GPU: "portable", with the emulators' bits, or "native", CUDA's own.
    faults : "raise" a FaultError, or "return" them. stream : on a GPU; the result waits when read.
    """

    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    args: Mapping[str, Any] | Sequence[Any]
    engine: EngineName = "jit"
    device: Device | str = "H200"
    shared: int = 0
    counters: bool = True
    detail: bool = False
    compiled: bool = False
    step_limit: int | None = None
    types: Mapping[str, str] | None = None
    check: str | Iterable[str] = ()
    schedule: int | None = None
    schedules: int = 0
    cooperative: bool = False
    cluster: int | tuple[int, ...] = 1
    in_place: bool = False
    maths: Maths = "portable"
    faults: Literal["raise", "return"] = "raise"
    stream: Stream | None = None


LaunchOptions.__init__.__qualname__ = "launch"  # of messages of Python: its callers pass the keywords of `launch`

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def with_options(
    options: Callable[Parameters, LaunchOptions],
) -> Callable[[Callable[..., Returned]], Callable[Concatenate[AnyKernel, Parameters], Returned]]:
    """Give a function of a kernel and of keywords the signature and the documentation of the options."""

    def declare(function: Callable[..., Returned]) -> Callable[Concatenate[AnyKernel, Parameters], Returned]:
        own = inspect.signature(function)
        kernel, *_ = own.parameters.values()
        parameters = [kernel, *inspect.signature(options).parameters.values()]
        vars(function)["__signature__"] = own.replace(parameters=parameters)
        _, _, described = inspect.cleandoc(options.__doc__ or "").partition("\n\n")
        summary, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\n\n")
        function.__doc__ = f"{summary}\n\n{described}\n\n{rest}"
        return function

    return declare


def prepare_request(kernel: AnyKernel, **options: Any) -> Request:
    """Return the validated request of `launch(kernel, **options)`. Raises the errors of `launch`."""
    return validated_request(kernel, LaunchOptions(**options))


def validated_request(kernel: AnyKernel, options: LaunchOptions, host_calls: bool = False) -> Request:
    """Return the validated request of a launch. host_calls: whether the kernel may call Python functions.

    Raises CompileError and LaunchError.
    """
    request = unlimited_request(kernel, options, host_calls)
    return request.limited(wrapping_loops(request))


MAX_SCHEDULES = 10_000


@within_stack()
def unlimited_request(kernel: AnyKernel, options: LaunchOptions, host_calls: bool = False) -> Request:
    """Return the request of `validated_request` for any values of numbers: no loop counter has a limit yet."""
    device, refusals = find_device(options.device), Refusals()
    with refusals.collected():
        grid, block = grid_and_block(options.grid, options.block, device)
        cluster = cluster_of(kernel, options.cluster, grid, device)
    with refusals.collected():
        shared = whole("shared", options.shared, 0, device.shared_per_block_optin, f"a block of the {device.name}")
    step_limit, schedule = options.step_limit, options.schedule
    with refusals.collected():
        step_limit = None if step_limit is None else whole("step_limit", step_limit, 1, MAX_ITERATIONS)
        schedule = None if schedule is None else whole("schedule", schedule, 0, (1 << 63) - 1)
        schedules = whole("schedules", options.schedules, 0, MAX_SCHEDULES)
        if schedule is not None and schedules:
            raise LaunchError(
                "schedule is the number of one order, schedules the number of orders: give one of the two"
            )
    with refusals.collected():
        checks = applied_checks(kernel, _checks(options.check))
    with refusals.collected():
        counters, detail, compiled = _recording(options)
    kernel, named_args = named_arguments(kernel, options.args)
    signature = signature_of(kernel)
    args = {**kernel.defaults, **named_args}
    with refusals.collected():
        require_names(kernel, signature, args)
    bindings, specialisation = bind_arguments(kernel, signature, args, options.types, host_calls, refusals)
    summary = specialisation.summary
    arguments: dict[str, Buffer | np.generic] = {
        name: bindings.arrays[name] if isinstance(type, Array) else bindings.numbers[name]
        for name, type in summary.parameters.items()
    }
    device_arrays = {name: value for name, value in args.items() if isinstance(value, DeviceArray)}
    masks = {name: value.written for name, value in device_arrays.items() if value.written is not None}
    check_aliases(kernel.__name__, device_arrays, summary.changed)
    in_place = truth("in_place", options.in_place)
    if in_place and (other := [name for name, value in args.items() if isinstance(value, DeviceArray | NewArray)]):
        raise LaunchError(f"{other[0]}: a launch in place modifies NumPy arrays; give one, or leave in_place=False")
    changed = [bindings.owners[name][0] if name in bindings.owners else name for name in summary.changed]
    (check_writeable if in_place else check_overlap)(args, changed)
    uninitialised = {name for name, value in bindings.new_arrays(args).items() if not value.readable}
    request = Request(
        specialisation=specialisation,
        grid=grid,
        block=block,
        arguments=arguments,
        dynamic_shared=shared,
        device=device,
        counters=counters,
        detail=detail,
        compiled=compiled,
        step_limit=step_limit,
        forms=bindings.forms,
        structs=bindings.structs,
        owners=bindings.owners,
        device_arrays=device_arrays,
        filled=bindings.filled,
        unwritten=frozenset(uninitialised | masks.keys()),
        written={
            name: flags_of_elements(mask, len(bindings.arrays[name]))
            for name, mask in masks.items()
            if any(mask.strides)
        },
        checks=checks,
        schedule=schedule,
        schedules=schedules,
        cooperative=truth("cooperative", options.cooperative),
        cluster=cluster,
        in_place=frozenset(summary.changed) if in_place else frozenset(),
        overlapping=in_place,
        maths=one_of("maths", options.maths, MATHS),
    )
    check_device(kernel, request)
    for name in device_arrays.keys() & set(summary.changed):
        device_arrays[name].rewritten = True
    return request


def grid_and_block(grid: Any, block: Any, device: Device) -> tuple[Dim3, Dim3]:
    """Return the extents of grid and block, within the device's limits."""
    grid = _dim3(grid, "grid", device.grid_extents, device)
    block = _dim3(block, "block", device.block_extents, device)
    threads = math.prod(block)
    if threads > device.threads_per_block:
        raise LaunchError(f"block is {threads:,} threads: the {device.name} takes at most {device.threads_per_block:,}")
    return grid, block


MAX_CLUSTER_BLOCKS = 16
"""Blocks of a cluster with the attribute for non-portable sizes; 8 without it."""


def cluster_of(kernel: AnyKernel, cluster: Any, grid: Dim3, device: Device) -> Dim3:
    """Return the extents of a cluster, which divide the grid: those of the launch, or those that the text of the kernel declares."""
    extents = _dim3(cluster, "cluster", grid, device)
    declared = kernel.cluster if isinstance(kernel, LaunchableKernel) else (1, 1, 1)
    if math.prod(declared) > 1 and extents not in (declared, (1, 1, 1)):
        raise LaunchError(
            f"{kernel.__name__} declares clusters of {declared} blocks: launch it without cluster={extents}"
        )
    extents = declared if math.prod(extents) == 1 else extents
    check_cluster(extents, grid, device)
    return extents


def check_cluster(extents: Dim3, grid: Dim3, device: Device) -> None:
    """Raise LaunchError unless a device runs clusters of these extents, and they divide the grid."""
    if (blocks := math.prod(extents)) == 1:
        return
    if device.compute_capability < (9, 0):
        raise LaunchError(f"a cluster of blocks needs compute capability 9.0: give a newer device than {device.name}")
    if blocks > MAX_CLUSTER_BLOCKS:
        raise LaunchError(f"cluster is {blocks:,} blocks: the {device.name} takes at most {MAX_CLUSTER_BLOCKS}")
    if any(n % own for n, own in zip(grid, extents, strict=True)):
        raise LaunchError(f"a grid of {grid} blocks is not divisible into clusters of {extents}: give another grid")


def _recording(options: LaunchOptions) -> tuple[bool, bool, bool]:
    """Return whether to record counters, samples and arrays."""
    counters, detail, compiled = (truth(name, getattr(options, name)) for name in ("counters", "detail", "compiled"))
    for name, value in (("detail", detail), ("compiled", compiled)):
        if value and not counters:
            raise LaunchError(f"{name}=True records counted events: leave counters=True")
    return counters, detail, compiled


def check_device(kernel: AnyKernel, request: Request) -> None:
    """Raise LaunchError unless the device has the kernel's instructions, shared memory and resident blocks."""
    device, summary = request.device, request.specialisation.summary
    for need in summary.needs:
        if device.compute_capability < need.capability:
            present, required = (".".join(map(str, c)) for c in (device.compute_capability, need.capability))
            raise LaunchError(
                f"{need.place}: {need.word} needs compute capability {required}, {device.name} has {present}: "
                "give a newer device"
            )
    assert request.dynamic_arrays is not None  # a LaunchError if it does not fit
    needed = request.dynamic_shared + summary.shared
    _check_cooperative(kernel, request, needed)
    if needed > device.shared_per_block_optin:
        raise LaunchError(
            f"{kernel.__name__} needs {counted(needed)} bytes of shared memory a block: the {device.name} has "
            f"{device.shared_per_block_optin:,}"
        )


def _check_cooperative(kernel: AnyKernel, request: Request, shared: int) -> None:
    """Raise LaunchError unless all blocks of a cooperative launch are resident on the device at once."""
    device, summary = request.device, request.specialisation.summary
    if summary.cooperative and (summary.clusters or math.prod(request.cluster) > 1):
        raise LaunchError(
            f"{kernel.__name__}: a kernel with st.grid_sync() in clusters of blocks does not run on an emulator"
        )
    if not request.cooperative:
        if summary.cooperative:
            raise LaunchError(f"{kernel.__name__} has st.grid_sync(): launch it with cooperative=True")
        return
    if device.compute_capability < (6, 0):
        raise LaunchError(f"a cooperative launch needs compute capability 6.0: give a newer device than {device.name}")
    blocks, threads = int(np.prod(request.grid)), int(np.prod(request.block))
    from ..machine.occupancy import occupancy  # late: few launches are cooperative

    most = occupancy(device, threads, 0, shared)
    if blocks > most.active_blocks * device.sms:
        raise LaunchError(
            f"{kernel.__name__}: a cooperative launch of {blocks} blocks, but {device.name} holds "
            f"{most.active_blocks * device.sms} at once: {most.active_blocks} on each of {device.sms} SMs, limited by "
            f"{most.limiter} (registers are known to nvcc alone); give fewer blocks more to do"
        )


def applied_checks(kernel: AnyKernel, checks: frozenset[str]) -> frozenset[str]:
    """Return the checks with a meaning for the language of a kernel."""
    return checks - kernel.unchecked if checks and isinstance(kernel, LaunchableKernel) else checks


def _checks(check: str | Iterable[str]) -> frozenset[str]:
    """Return the named checks."""
    if not isinstance(check, str | Iterable):
        raise LaunchError(f'check is a text such as "all", or several, not {shown(check)}')
    words = [check] if isinstance(check, str) else list(check)
    if wrong := [word for word in words if not isinstance(word, str)]:
        raise LaunchError(f"check is made of texts, not of {shown(wrong[0])}")
    if not any(words):
        return frozenset()
    from ..sanitizer import checkers  # late: only for checked launches

    return checkers.parse(words)


# ------------------------------------------------------------------ arguments
def find_device(device: Device | str) -> Device:
    """Return a device by itself, by its name or by its TOML file."""
    if isinstance(device, str):
        return devices.find(device)
    if not isinstance(device, Device):
        raise LaunchError(f"device is one of st.devices, its name or a TOML file, not {shown(device)}")
    return device


def _dim3(value: Any, what: str, most: Dim3, device: Device) -> Dim3:
    """Return one to three positive numbers within the device's limit along each axis."""
    value = as_number(value)
    single = isinstance(value, int | np.integer)
    if not single and not isinstance(value, tuple | list):
        raise LaunchError(f"{what} is one to three positive integers, not {shown(value)}")
    sizes = (value,) if single else tuple(value)
    if not 1 <= len(sizes) <= 3:
        raise LaunchError(f"{what} is one to three positive integers, not {shown(value)}")
    names = (what,) if single else (f"{what}[0]", f"{what}[1]", f"{what}[2]")
    numbers = [whole(n, size, 1, m, f"the {device.name}") for n, size, m in zip(names, sizes, most, strict=False)]
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def named_arguments(kernel: AnyKernel, args: Any) -> tuple[AnyKernel, Mapping[str, Any]]:
    """Return the kernel bound to the arguments of a launch, and these by name, arrays of other libraries as NumPy arrays in the
    same memory. A tuple or a list has the order of the parameters. Raises LaunchError."""
    kernel, args = bound(kernel, args)
    if isinstance(args, tuple | list):
        names = list(signature_of(kernel).parameters)
        if len(args) > len(names):
            raise LaunchError(f"{kernel.__name__} takes {', '.join(names) or 'nothing'}: args are {len(args)}")
        if missing := [name for name in names[len(args) :] if name not in kernel.defaults]:
            raise LaunchError(f"{kernel.__name__} needs {', '.join(missing)}: args are {len(args)}")
        args = dict(zip(names, args, strict=False))
    if not isinstance(args, Mapping) or not all(isinstance(name, str) for name in args):
        raise LaunchError(f"args is a mapping of parameters' names to values, or a tuple of these, not {shown(args)}")
    parameters = signature_of(kernel).parameters
    return kernel, {name: argument_of(name, parameters.get(name), value) for name, value in args.items()}
