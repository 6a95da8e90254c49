"""What if: a launch made again with other blocks, constants and devices, each with the time that the model gives it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import disk_cache
from ..checked import one_of, shown
from ..errors import LaunchError, SimtbedError
from ..frontend.digest import digest
from ..language.functions import Kernel
from ..language.hints import Const
from ..machine.device import Device
from ..runtime.arrays import NewArray
from ..runtime.request import device_given, prepare_request
from .explain import text as explained
from .launches import counting_rules, observe
from .time import Observed, estimate

if TYPE_CHECKING:
    from distributed import Client

Dim3 = tuple[int, int, int]
Registers = Callable[[Any, Device], int]
"""The registers a thread that a compiler gives a request's kernel on a device; 0 where that is not known."""
COLUMNS = (
    "kernel", "launch", "device", "grid", "block", "const", "time_us", "low_us", "high_us", "bound", "warp_instructions",
    "l1_hit", "l2_hit", "dram_bytes",
)  # fmt: skip
OBJECTIVES = {"time": "time_us", "bytes": "dram_bytes"}
_MOST = 100_000


@dataclass(frozen=True)
class Replayed:
    """A launch that can be made again. arguments: by name, Const ones included. number: of the launch."""

    kernel: Kernel
    grid: Dim3
    block: Dim3
    arguments: Mapping[str, Any]
    shared: int = 0
    cooperative: bool = False
    types: Mapping[str, str] | None = None
    number: int = 0

    @property
    def constants(self) -> dict[str, Any]:
        """Its Const arguments, those left to their defaults included."""
        given = {**self.kernel.defaults, **self.arguments}
        annotations = self.kernel.function.__annotations__
        return {n: v for n, v in given.items() if annotations[n] is Const or str(annotations[n]).endswith("Const")}


@dataclass(frozen=True)
class Configuration:
    """How a launch is made. choice: what was chosen, the same for all launches."""

    grid: Dim3
    block: Dim3
    constants: Mapping[str, Any]
    choice: str


@dataclass(frozen=True)
class Axes:
    """What is varied. blocks, grids: empty for those of the launch; a grid then covers the same threads. constants: values
    by name. ties: constants that follow an extent of the block, as {"BLOCK": "block.x"}."""

    blocks: tuple[Dim3, ...] = ()
    grids: tuple[Dim3, ...] = ()
    constants: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    ties: Mapping[str, str] = field(default_factory=dict)

    def of(self, launch: Replayed) -> list[Configuration]:
        """The configurations of a launch; constants that its kernel does not have are left out."""
        own = launch.constants
        names = [name for name in self.constants if name in own]
        found = []
        for block, grid, *values in product(
            self.blocks or (launch.block,), self.grids or (None,), *(self.constants[name] for name in names)
        ):
            constants = dict(zip(names, values, strict=True))
            constants |= {name: block["xyz".index(of[-1])] for name, of in self.ties.items() if name in own}
            words = ["x".join(map(str, block)).removesuffix("x1").removesuffix("x1")] if self.blocks else []
            words += [f"grid {'x'.join(map(str, grid))}"] if grid else []
            words += [f"{name}={value}" for name, value in constants.items()]
            covering = tuple(-(-g * b // n) for g, b, n in zip(launch.grid, launch.block, block, strict=True))
            x, y, z = grid or covering
            found.append(Configuration((x, y, z), block, {**own, **constants}, ", ".join(words) or "as launched"))
        return found


class Table(list[dict[str, Any]]):
    """Rows with COLUMNS, one a launch and configuration: `pandas.DataFrame(table)` takes it as it is.

    choices: of each row, what was chosen. refused: configurations that cannot be launched, with the reason.
    explanations: of each row, in words.
    """

    def __init__(self, objective: str = "time") -> None:
        super().__init__()
        self.objective = objective
        self.choices: list[str] = []
        self.refused: list[str] = []
        self.explanations: list[str] = []

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS

    def column(self, name: str) -> list[Any]:
        """The values of one column. Raises LaunchError with the columns there are."""
        one_of("column", name, COLUMNS)
        return [row[name] for row in self]

    def sums(self) -> dict[tuple[str, str], dict[str, float]]:
        """By kernel and device: the objective of each choice, all launches together."""
        found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for row, choice in zip(self, self.choices, strict=True):
            of = found[row["kernel"], row["device"]]
            of[choice] = of.get(choice, 0.0) + row[OBJECTIVES[self.objective]]
        return dict(found)

    def best(self) -> dict[tuple[str, str], tuple[str, float]]:
        """By kernel and device: the best choice, and its margin over the next, as a share of the next; 0 where there is none."""
        found = {}
        for key, of in self.sums().items():
            first, *rest = sorted(of, key=lambda choice: of[choice])
            found[key] = (first, 1 - of[first] / of[rest[0]] if rest and of[rest[0]] else 0.0)
        return found

    def csv(self) -> str:
        """As comma-separated values, with a line of names."""
        into = io.StringIO()
        writer = csv.writer(into, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in self:
            writer.writerow([_flat(row[name]) for name in COLUMNS])
        return into.getvalue()

    def _repr_html_(self) -> str:
        """In a notebook: a table."""
        from html import escape

        head = "".join(f"<th>{name}</th>" for name in COLUMNS)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(_flat(row[n]))}</td>' for n in COLUMNS)}</tr>" for row in self)
        return f"<table><tr>{head}</tr>{rows}</table>"


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={one}" for name, one in value.items())
    return "x".join(map(str, value)) if isinstance(value, list) else str(value)


# ------------------------------------------------------------------ running
@dataclass(frozen=True)
class Task:
    """One configuration of a launch on devices that count alike."""

    launch: Replayed
    configuration: Configuration
    devices: tuple[Device, ...]
    cold: bool
    registers: Registers | None

    def name(self) -> str | None:
        """By its content, under which the disk cache keeps what it found; None where the kernel has no digest."""
        kernel = digest(self.launch.kernel)
        if kernel is None:
            return None
        found = hashlib.sha256(f"{kernel.key}\0{disk_cache.edition()}\0{self.configuration}\0{self.devices}\0".encode())
        found.update(f"{self.cold}\0{self.launch.shared}\0{self.launch.cooperative}\0{self.launch.types}\0".encode())
        found.update(f"{self.launch.number}\0{self.registers}\0".split(" at 0x")[0].encode())
        for name, value in sorted(self.launch.arguments.items()):
            array = isinstance(value, np.ndarray)
            found.update(f"{name}\0{(value.dtype, value.shape, value.strides) if array else value}\0".encode())
            if array:
                found.update(np.ascontiguousarray(value).view(np.uint8).reshape(-1).data)
        return f"{found.hexdigest()}.whatif"


Answer = tuple[list[dict[str, Any]], list[str], str]
"""Rows, their explanations, and why there are none."""


def solve(task: Task) -> Answer:
    """The rows of a task, from the disk cache where they are known."""
    name = task.name()
    known = name and disk_cache.load(name, json.loads)
    if known:
        rows, explanations, refused = known
        return rows, explanations, refused
    answer = _solved(task)
    if name:
        disk_cache.save(name, json.dumps(answer).encode())
    return answer


def _solved(task: Task) -> Answer:
    launch, chosen = task.launch, task.configuration
    try:
        request = prepare_request(
            launch.kernel, grid=chosen.grid, block=chosen.block, args={**launch.arguments, **chosen.constants},
            device=task.devices[0], shared=launch.shared, cooperative=launch.cooperative, types=launch.types,
        )  # fmt: skip
        observed = observe(request)
    except SimtbedError as error:
        line = str(error).splitlines()[0]
        return [], [], f"{launch.kernel.__name__}, {chosen.choice}: {line}"
    rows, explanations, refused = [], [], ""
    for device in task.devices:
        registers = task.registers(request, device) if task.registers else 0
        own = Observed(request, observed.counts, observed.lines, registers)
        if not own.occupancy(device).active_blocks:
            refused = f"{launch.kernel.__name__}, {chosen.choice}: {device.name} holds no block of it"
            continue
        found = estimate(own, device, task.cold)
        rows.append({
            "kernel": launch.kernel.__name__, "launch": launch.number, "device": device.name, "grid": list(chosen.grid),
            "block": list(chosen.block), "const": {n: _plain(v) for n, v in chosen.constants.items()},
            "time_us": found.time_us, "low_us": found.low_us, "high_us": found.high_us, "bound": found.bound,
            "warp_instructions": found.warp_instructions, "l1_hit": found.traffic.l1_hit, "l2_hit": found.traffic.l2_hit,
            "dram_bytes": found.traffic.dram_bytes,
        })  # fmt: skip
        explanations.append(explained(own, device, found, task.cold))
    return rows, explanations, refused


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str) else str(value)


def sweep(
    launches: Sequence[Replayed],
    axes: Axes,
    devices: Sequence[Device],
    *,
    objective: str = "time",
    cold: bool = False,
    dask: str | Client | None = None,
    registers: Registers | None = None,
    progress: Callable[[str], None] = lambda done: None,
) -> Table:
    """All launches in all configurations on all devices, on all cores of this machine, or on a Dask cluster.

    What was found is kept in the disk cache task by task, so that a sweep that was interrupted goes on where it was.
    Raises LaunchError for a constant that no launch has, and where no configuration can be launched.
    """
    one_of("objective", objective, OBJECTIVES)
    named = {name for launch in launches for name in launch.constants}
    for name in (*axes.constants, *axes.ties):
        if name not in named:
            raise LaunchError(
                f"no launch has a Const parameter {shown(name)}; there are {', '.join(sorted(named)) or 'none'}"
            )
    groups: dict[tuple[object, ...], list[Device]] = defaultdict(list)
    for device in devices:
        groups[counting_rules(device)].append(device)
    tasks = [
        Task(launch, chosen, tuple(group), cold, registers)
        for launch in launches
        for chosen in axes.of(launch)
        for group in groups.values()
    ]
    if len(tasks) > _MOST:
        raise LaunchError(f"{len(tasks):,} configurations: a sweep takes at most {_MOST:,}")
    table = Table(objective)
    for number, (task, (rows, explanations, refused)) in enumerate(_answers(tasks, dask), 1):
        progress(f"{number:,} of {len(tasks):,} configurations")
        table += rows
        table.choices += [task.configuration.choice] * len(rows)
        table.explanations += explanations
        if refused and refused not in table.refused:
            table.refused.append(refused)
    if not table:
        raise LaunchError(table.refused[0] if table.refused else "there is no launch to make again")
    return table


def _answers(tasks: Sequence[Task], dask: Any) -> Iterator[tuple[Task, Answer]]:
    if dask is not None:
        from ..cluster import map_over_cluster

        yield from map_over_cluster(tasks, solve, dask)
        return
    pool = ThreadPoolExecutor(max(1, min(len(tasks), os.cpu_count() or 1)))
    try:
        yield from zip(tasks, pool.map(solve, tasks), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


# ------------------------------------------------------------------ from Python
def whatif(
    kernel: Kernel,
    *,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Mapping[str, Any],
    device: Any = "H200",
    blocks: Iterable[int | tuple[int, ...]] = (),
    grids: Iterable[int | tuple[int, ...]] = (),
    const: Mapping[str, Iterable[Any]] | None = None,
    tie: Mapping[str, str] | None = None,
    objective: str = "time",
    cold: bool = False,
    dask: str | Client | None = None,
    shared: int = 0,
    cooperative: bool = False,
    types: Mapping[str, str] | None = None,
) -> Table:
    """The time of a launch as `launch` makes it, with other blocks, constants and devices: a table of rows, one a choice.

    device: one as `launch` takes it, or several. blocks: instead of `block`; the grid then covers the same threads, unless
    `grids` are given. const: values of Const parameters by name. tie: Const parameters that follow an extent of the block,
    {"BLOCK": "block.x"}. objective: what `best` asks for, "time" or "bytes" of device memory. cold: with empty caches.
    dask: a cluster as `map_over_cluster` takes it. Registers are not known here: they are taken not to limit.

    Raises LaunchError and CompileError where no choice can be launched.
    """
    several = device if isinstance(device, list | tuple) else [device]
    for name, of in (tie or {}).items():
        if of not in ("block.x", "block.y", "block.z"):
            raise LaunchError(f"tie of {name} is block.x, block.y or block.z, not {shown(of)}")
    values = {name: tuple(given) for name, given in (const or {}).items()}
    axes = Axes(tuple(map(dim3, blocks)), tuple(map(dim3, grids)), values, dict(tie or {}))
    kept = dict(args.items())
    for name, value in args.items():
        if not isinstance(value, NewArray):
            kept[name] = getattr(value, "host", value)
    launch = Replayed(kernel, dim3(grid), dim3(block), kept, shared, cooperative, types)
    if dask is not None:
        pickle.dumps(launch)
    return sweep([launch], axes, [device_given(one) for one in several], objective=objective, cold=cold, dask=dask)


def dim3(given: Any) -> Dim3:
    """One to three whole numbers as three; what is wrong with them the launch says."""
    sizes = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(n, int | np.integer) and n > 0 for n in sizes):
        raise LaunchError(f"an extent is one to three positive whole numbers, not {shown(given)}")
    x, y, z = (*(int(n) for n in sizes), 1, 1)[:3]
    return x, y, z
