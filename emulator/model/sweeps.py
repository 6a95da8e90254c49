"""What-if sweeps: a launch repeated with other blocks, constants and devices, each with its modeled time."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import disk_cache
from ..checked import one_of, shown
from ..cluster import map_over_cluster
from ..compiled.kernel import tools
from ..errors import LaunchError, SimtbedError
from ..ir.fingerprint import fingerprint
from ..machine.device import Device
from ..own_code import CubinCode, CudaText
from ..runtime.arrays import DeviceArray
from ..runtime.engine import Request
from ..runtime.recording import plain_value
from ..runtime.request import find_device, named_arguments, prepare_request
from ..runtime.specialisation import AnyKernel, signature_of
from ..runtime.tolerance import Tolerance
from ..tracebacks import without_own_frames
from .explain import text as explained
from .launches import counting_rules, observe
from .observed import ObservedLaunch
from .outputs import Agreement, Comparison, Reference, output_names
from .sweep_table import OBJECTIVES, SweepTable
from .time import estimate

if TYPE_CHECKING:
    from distributed import Client

Dim3 = tuple[int, int, int]
Registers = Callable[[Any, Device], int]
"""Registers per thread of a request's kernel on a device, from a compiler; 0 if unknown."""
_MAX_CONFIGURATIONS = 100_000


@dataclass(frozen=True)
class RepeatableLaunch:
    """A launch to repeat. arguments: by name, with Const ones. number: of the launch. device: of the launch as given.
    overlapping: whether arrays may share memory."""

    kernel: AnyKernel
    grid: Dim3
    block: Dim3
    arguments: Mapping[str, Any]
    shared: int = 0
    cooperative: bool = False
    types: Mapping[str, str] | None = None
    number: int = 0
    device: Device | None = None
    overlapping: bool = False
    cluster: Dim3 = (1, 1, 1)

    @property
    def as_given(self) -> Configuration:
        """The launch's own configuration."""
        return Configuration(self.grid, self.block, self.constants, "as launched")

    @property
    def constants(self) -> dict[str, Any]:
        """Const arguments, with defaults."""
        arguments, parameters = {**self.kernel.defaults, **self.arguments}, signature_of(self.kernel).parameters
        return {
            name: arguments[name]
            for name, parameter in parameters.items()
            if parameter.type is None and name in arguments
        }


@dataclass(frozen=True)
class Configuration:
    """A launch configuration. choice: label, equal for all launches."""

    grid: Dim3
    block: Dim3
    constants: Mapping[str, Any]
    branch_arm: str

    def repeats(self, other: Configuration) -> bool:
        """Return whether both are the same launch."""
        return (self.grid, self.block, self.constants) == (other.grid, other.block, other.constants)


@dataclass(frozen=True)
class Axes:
    """Varied parameters. blocks, grids: empty for the launch's own; a grid then covers the same threads. constants:
    values by name. ties: constants equal to an extent of the block, such as {"BLOCK": "block.x"}."""

    blocks: tuple[Dim3, ...] = ()
    grids: tuple[Dim3, ...] = ()
    constants: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    ties: Mapping[str, str] = field(default_factory=dict)

    def configurations(self, launch: RepeatableLaunch) -> list[Configuration]:
        """Return the configurations of a launch; unknown constants are ignored."""
        launch_constants = launch.constants
        names = [name for name in self.constants if name in launch_constants]
        result = []
        for block, grid, *values in product(
            self.blocks or (launch.block,), self.grids or (None,), *(self.constants[name] for name in names)
        ):
            constants = dict(zip(names, values, strict=True))
            labels = [_extents(block)] if self.blocks else []
            labels += [f"grid {'x'.join(map(str, grid))}"] if grid else []
            labels += [f"{name}={value}" for name, value in constants.items()]
            constants |= {
                name: block["xyz".index(of[-1])] for name, of in self.ties.items() if name in launch_constants
            }
            covering = tuple(-(-g * b // n) for g, b, n in zip(launch.grid, launch.block, block, strict=True))
            x, y, z = grid or covering
            result.append(
                Configuration((x, y, z), block, {**launch_constants, **constants}, ", ".join(labels) or "as launched")
            )
        return result


# ------------------------------------------------------------------ planning
@dataclass(frozen=True)
class SweepTask:
    """A configuration on devices with equal counting rules. request: None if invalid, with the reason in `refused`.
    kernel, number: of the launch. reference: the launch as given; None if the configuration is that launch. derived_grid:
    whether the grid differs from that of the launch because the block does."""

    kernel: str
    number: int
    branch_arm: str
    constants: Mapping[str, Any]
    devices: tuple[Device, ...]
    request: Request | None
    refused: str = ""
    reference: Reference | None = None
    derived_grid: bool = False


def plan(launch: RepeatableLaunch, axes: Axes, devices: Sequence[Device]) -> list[SweepTask]:
    """Return the tasks of a launch. Configurations share equal arrays."""
    groups: dict[tuple[object, ...], list[Device]] = defaultdict(list)
    for device in devices:
        groups[counting_rules(device)].append(device)
    tasks: list[SweepTask] = []
    reference = _reference(launch, devices)
    for chosen, group in product(axes.configurations(launch), groups.values()):
        request, refused = None, ""
        try:
            request = _request(launch, chosen, group[0])
        except SimtbedError as error:
            refused = f"{launch.kernel.__name__}, {chosen.branch_arm}: {str(error).splitlines()[0]}"
        plain = {name: plain_value(value) for name, value in chosen.constants.items()}
        tasks.append(
            SweepTask(
                launch.kernel.__name__, launch.number, chosen.branch_arm, plain, tuple(group), request, refused,
                None if chosen.repeats(launch.as_given) else reference, chosen.grid != launch.grid and not axes.grids,
            )
        )  # fmt: skip
    first = reference.request or next((task.request for task in tasks if task.request), None)
    return [replace(task, request=_sharing(task.request, first)) for task in tasks] if first else tasks


def _reference(launch: RepeatableLaunch, devices: Sequence[Device]) -> Reference:
    """Return the launch as given on the first device that takes it."""
    refused = ""
    for device in (*filter(None, [launch.device]), *devices):
        try:
            return Reference(_request(launch, launch.as_given, device))
        except SimtbedError as error:
            refused = refused or str(error).splitlines()[0]
    return Reference(None, refused)


def _request(launch: RepeatableLaunch, chosen: Configuration, device: Device) -> Request:
    request = prepare_request(
        launch.kernel, grid=chosen.grid, block=chosen.block, args={**launch.arguments, **chosen.constants}, device=device,
        shared=launch.shared, cooperative=launch.cooperative, types=launch.types, in_place=launch.overlapping,
        cluster=launch.cluster,
    )  # fmt: skip
    return replace(request, device_arrays={}, in_place=frozenset())


def _sharing(request: Request | None, first: Request) -> Request | None:
    """Replace equal arrays by those of another request."""
    if request is None:
        return None
    shared_arguments = dict(request.arguments)
    for name, array in request.arguments.items():
        shared = first.arguments.get(name)
        if isinstance(array, np.ndarray) and isinstance(shared, np.ndarray):
            same_type = array.dtype == shared.dtype and array.shape == shared.shape
            if same_type and (_new_in_both(name, request, first) or array.ctypes.data == shared.ctypes.data):
                shared_arguments[name] = shared
    return replace(request, arguments=shared_arguments)


def _new_in_both(name: str, first: Request, second: Request) -> bool:
    """Return whether an array is allocated for both launches with equal contents."""
    contents = [request.filled[name].tobytes() for request in (first, second) if name in request.filled]
    return len(contents) == 2 and contents[0] == contents[1]


def _extents(extents: Dim3) -> str:
    return "x".join(map(str, extents)).removesuffix("x1").removesuffix("x1")


# ------------------------------------------------------------------ running
@dataclass(frozen=True)
class SweepWork:
    """A task with estimation options."""

    task: SweepTask
    cold: bool
    registers: Registers | None
    source_only: bool = False
    comparison: Comparison = field(default_factory=Comparison)

    def name(self) -> str:
        """Return the content-based name of the cache entry."""
        task, request = self.task, self.task.request
        assert request is not None
        program, own = request.specialisation.key or fingerprint(request.program), request.specialisation.own_code
        code = own if isinstance(own, CubinCode | CudaText) else own is None
        how = (
            code,
            request.grid,
            request.block,
            request.dynamic_shared,
            request.cooperative,
            request.cluster,
            task.devices,
            task.number,
        )
        compared = (self.comparison, task.derived_grid, task.reference.name() if task.reference else "")
        tool_versions = () if self.source_only and self.registers is None else tools()
        digest = hashlib.sha256(
            f"{program}\0{disk_cache.edition()}\0{how}\0{self.cold}\0{self.source_only}\0{tool_versions}\0{compared}\0".encode()
        )
        if self.registers is not None:
            source = disk_cache.source_digest(inspect.getfile(self.registers))  # not covered by the edition
            digest.update(f"{self.registers.__qualname__}\0{source}\0".encode())
        digest.update(f"{task.kernel}\0{task.branch_arm}\0{task.constants}\0".encode())
        for name, value in sorted(request.arguments.items()):
            array = np.asarray(value)
            digest.update(f"{name}\0{array.dtype}\0{array.shape}\0".encode())
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return f"{digest.hexdigest()}.whatif"


Answer = tuple[list[dict[str, Any]], list[str], str, str]
"""Rows, explanations, the reason for no rows, and the agreement of the outputs."""


def solve(work: SweepWork) -> Answer:
    """Return the rows of a task, cached on disk. Failures are not cached: memory may be sufficient later."""
    if work.task.request is None:
        return [], [], work.task.refused, Agreement.unknown
    name = work.name()
    cached: Answer | None = disk_cache.load(name, json.loads)
    if cached is None:
        cached = _solve(work, work.task.request)
        if cached[0]:
            disk_cache.save(name, json.dumps(cached).encode())
    return cached


def _solve(work: SweepWork, request: Request) -> Answer:
    task = work.task
    rows, explanations, refused = [], [], ""
    try:
        observed = observe(request, source_only=work.source_only, writes=task.reference is not None)
    except SimtbedError as error:
        return [], [], f"{task.kernel}, {task.branch_arm}: {str(error).splitlines()[0]}", Agreement.unknown
    agreement, reason = _compare(work, observed)
    for device in task.devices:
        registers = work.registers(request, device) if work.registers else 0
        launch = replace(observed, registers=registers)
        if not launch.occupancy(device).active_blocks:
            refused = f"{task.kernel}, {task.branch_arm}: {device.name} holds no block of it"
            continue
        try:
            estimated = estimate(launch, device, work.cold)
        except SimtbedError as error:
            refused = f"{task.kernel}, {task.branch_arm}: {str(error).splitlines()[0]}"
            continue
        rows.append({
            "kernel": task.kernel, "launch": task.number, "device": device.name, "grid": list(request.grid),
            "block": list(request.block), "const": dict(task.constants),
            "time_us": estimated.time_us, "low_us": estimated.low_us, "high_us": estimated.high_us, "bound": estimated.bound,
            "warp_instructions": estimated.warp_instructions, "l1_hit": estimated.traffic.l1_hit, "l2_hit": estimated.traffic.l2_hit,
            "dram_bytes": estimated.traffic.dram_bytes, "outputs": reason,
        })  # fmt: skip
        explanations.append(explained(launch, device, estimated, work.cold))
    return rows, explanations, refused, agreement


def _compare(work: SweepWork, observed: ObservedLaunch) -> tuple[Agreement, str]:
    """Return the agreement of the outputs of a task with those of the launch as given, and the value of column "outputs"."""
    reference = work.task.reference
    if reference is None:
        return Agreement.reference, Agreement.reference.value
    agreement, reason = reference.compare(observed, work.comparison)
    if agreement is Agreement.differ and work.task.derived_grid and reference.request is not None:
        grid = _extents(reference.request.grid)
        reason += f"; the grid follows the block: grids=[{grid}] (--grid {grid}) keeps that of the launch"
    return agreement, reason


def run(
    tasks: Sequence[SweepTask],
    *,
    objective: str = "time",
    cold: bool = False,
    dask: str | Client | None = None,
    registers: Registers | None = None,
    source_only: bool = False,
    comparison: Comparison | None = None,
    progress: Callable[[str], None] = lambda done: None,
) -> SweepTable:
    """Run tasks on all cores, or on a Dask cluster.

    Results are cached per task, so an interrupted sweep resumes. Raises LaunchError if no configuration is valid.
    """
    comparison = comparison or Comparison()
    comparison.require_names(name for task in tasks if task.request for name in output_names(task.request))
    one_of("objective", objective, OBJECTIVES)
    if len(tasks) > _MAX_CONFIGURATIONS:
        raise LaunchError(f"{len(tasks):,} configurations: a sweep takes at most {_MAX_CONFIGURATIONS:,}")
    table = SweepTable(objective)
    works = [SweepWork(task, cold, registers, source_only, comparison) for task in tasks]
    for number, (work, (rows, explanations, refused, agreement)) in enumerate(_answer_all(works, dask), 1):
        progress(f"{number:,} of {len(tasks):,} configurations")
        table += rows
        table.choices += [work.task.branch_arm] * len(rows)
        table.explanations += explanations
        table.agreements += [Agreement(agreement)] * len(rows)
        if refused and refused not in table.refused:
            table.refused.append(refused)
    if not table:
        raise LaunchError(table.refused[0] if table.refused else "there is no launch to repeat")
    return table


def require_constants(axes: Axes, available: Iterable[str]) -> None:
    """Raise LaunchError for a constant of no launch."""
    names = sorted(set(available))
    for name in (*axes.constants, *axes.ties):
        if name not in names:
            raise LaunchError(f"no launch has a Const parameter {name}; there are {', '.join(names) or 'none'}")


def _answer_all(works: Sequence[SweepWork], dask: Any) -> Iterator[tuple[SweepWork, Answer]]:
    if dask is not None:
        yield from map_over_cluster(works, solve, dask)
        return
    pool = ThreadPoolExecutor(max(1, min(len(works), os.cpu_count() or 1)))
    try:
        yield from zip(works, pool.map(solve, works), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


# ------------------------------------------------------------------ Python interface
@without_own_frames
def whatif(  # noqa: PLR0913 - the public signature: keywords only
    kernel: AnyKernel,
    *,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Mapping[str, Any] | Sequence[Any],
    device: Any = "H200",
    blocks: Iterable[int | tuple[int, ...]] = (),
    grids: Iterable[int | tuple[int, ...]] = (),
    const: Mapping[str, Iterable[Any]] | None = None,
    tie: Mapping[str, str] | None = None,
    objective: str = "time",
    cold: bool = False,
    dask: str | Client | None = None,
    source_only: bool = False,
    not_compared: str | Iterable[str] = (),
    rtol: float = 0.0,
    atol: float = 0.0,
    shared: int = 0,
    cooperative: bool = False,
    types: Mapping[str, str] | None = None,
    cluster: int | tuple[int, ...] = 1,
) -> SweepTable:
    """Return the time of a launch with other blocks, constants and devices: a table with one row per choice.

    The outputs of each choice are compared with those of the launch as given, to the bit or within `atol + rtol *
    |expected|`. A choice with other outputs is never the best. not_compared: arrays whose contents may depend on the choice.

    device: one, or several. blocks: instead of `block`; the grid then covers the same threads, unless `grids` is given.
    const: values of Const parameters by name. tie: Const parameters equal to an extent of the block, such as {"BLOCK":
    "block.x"}. objective of `best`: "time", or "bytes" of device memory. cold: with empty caches. dask: a cluster for
    `map_over_cluster`. source_only: without nvcc; registers then do not limit.

    Raises LaunchError and CompileError if no choice is valid.
    """
    several = device if isinstance(device, list | tuple) else [device]
    for name, extent in (tie or {}).items():
        if extent not in ("block.x", "block.y", "block.z"):
            raise LaunchError(f"tie of {name} is block.x, block.y or block.z, not {shown(extent)}")
    values = {name: tuple(options) for name, options in (const or {}).items()}
    axes = Axes(tuple(map(dim3, blocks)), tuple(map(dim3, grids)), values, dict(tie or {}))
    kernel, named = named_arguments(kernel, args)
    arguments = {name: host_values(value) for name, value in named.items()}
    launch = RepeatableLaunch(
        kernel, dim3(grid), dim3(block), arguments, shared, cooperative, types, cluster=dim3(cluster)
    )
    require_constants(axes, launch.constants)
    devices = [find_device(one) for one in several]
    tasks = plan(launch, axes, devices)
    if devices and not any(task.request for task in tasks):
        _request(launch, launch.as_given, devices[0])  # raises the whole error
    names = (not_compared,) if isinstance(not_compared, str) else tuple(not_compared)
    rule = Comparison(names, Tolerance(rtol, atol))
    return run(tasks, objective=objective, cold=cold, dask=dask, source_only=source_only, comparison=rule)


def host_values(argument: Any) -> Any:
    """Return an argument for repeated launches, with device arrays copied to the host."""
    return argument.numpy() if isinstance(argument, DeviceArray) else argument


def dim3(extent: Any) -> Dim3:
    """Return an extent as three whole numbers. Raises LaunchError for invalid ones."""
    sizes = tuple(extent) if isinstance(extent, list | tuple) else (extent,)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(n, int | np.integer) and n > 0 for n in sizes):
        raise LaunchError(f"an extent is one to three positive whole numbers, not {shown(extent)}")
    x, y, z = (*(int(n) for n in sizes), 1, 1)[:3]
    return x, y, z
