"""A record of what a GPU counted: how it is taken, what it holds, where it is kept."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from simtbed import LaunchError, SimtbedError, devices
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.engine import describe
from simtbed.engines.cuda.sass import Instruction, disassemble
from simtbed.kernels.files import write

from . import nsight
from .cases import Launched, RecordingLauncher, find
from .figures import A_LAUNCH, FIGURES, PIPE_METRIC
from .pipes import PIPES
from .weigh import Placed

FOLDER = Path(__file__).parent
_METRICS = {figure.name: figure.metric for figure in FIGURES if figure.metric}
PIPE_METRICS = {pipe: PIPE_METRIC.format(pipe=pipe) for pipe in PIPES}


class Ran(NamedTuple):
    """An instruction with its place in the printed kernel, and its executions by warps and by threads."""

    placed: Placed
    warps: int
    threads: int


@dataclass(frozen=True)
class Profiled:
    """One printed kernel in one case, its launches summed.

    source: digest of the printed kernel. registers, shared_bytes: as the compiler reports them; shared_bytes with what
    the launch adds. figures: by name; pipes: instructions by pipe. sass: what ran, without the padding.
    """

    kernel: str
    source: str
    launches: int
    registers: int
    shared_bytes: int
    figures: dict[str, float]
    pipes: dict[str, int]
    sass: tuple[Ran, ...]


@dataclass(frozen=True)
class Record:
    """What one GPU counted. device: the name of its row in `devices`; gpu: its own."""

    device: str
    gpu: str
    arch: str
    toolkit: str
    profiler: str
    dated: str
    cases: dict[str, tuple[Profiled, ...]]


# ------------------------------------------------------------------ taking one
def take(names: Sequence[str], only: str = "*") -> Record:
    """Profile the cases whose names fit `only` on this machine's GPU. Raises LaunchError where there is no GPU, nvcc, nvdisasm or ncu."""
    ncu = nsight.find_ncu()
    launched = _launched(names, only)
    gpu = describe()
    known = [name for name in devices.DEVICES if name in gpu["device"].replace("-", " ").split()]
    if not known:
        raise LaunchError(f"{gpu['device']} is none of the devices known: add its row to emulator/machine/device.py")
    every = [one for kernels in launched.values() for one in kernels]
    with ThreadPoolExecutor() as pool:
        built = dict(
            zip((one.digest for one in every), pool.map(partial(_built, arch=gpu["arch"]), every), strict=True)
        )
    profiles: dict[tuple[str, str], list[nsight.Profile]] = {}
    metrics = [*_METRICS.values(), *PIPE_METRICS.values()]
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        log = str(Path(folder, "log.json"))
        worker = [sys.executable, "-m", "simtbed.reports.hardware.worker", log, only, *names]
        order = nsight.profile(ncu, worker, metrics)
        listed = json.loads(Path(log).read_text(encoding="utf-8"))
    if len(listed) != len(order):
        raise LaunchError(f"{len(listed)} launches were made, Nsight Compute reports {len(order)}")
    for (case, digest), found in zip(listed, order, strict=True):
        profiles.setdefault((case, digest), []).append(found)
    cases = {
        name: tuple(_profiled(one, built[one.digest], profiles[name, one.digest]) for one in kernels)
        for name, kernels in launched.items()
    }
    toolkit = nvcc.version(nvcc.find_nvcc())
    return Record(known[0], gpu["device"], gpu["arch"], toolkit, nsight.version(ncu), date.today().isoformat(), cases)


def _launched(names: Sequence[str], only: str) -> dict[str, list[Launched]]:
    """Every case run on the emulator, a process each, to know its kernels."""
    cases = [case.name for case in find(names, only)]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return dict(zip(cases, pool.map(partial(_emulated, names, only), range(len(cases))), strict=True))


def _emulated(names: Sequence[str], only: str, number: int) -> list[Launched]:
    launcher = RecordingLauncher("jit")
    find(names, only)[number].run(launcher)
    return launcher.kernels


Compiled = tuple[nvcc.Built, tuple[Instruction, ...]]


def _built(one: Launched, arch: str) -> Compiled:
    built = nvcc.build(one.source.with_lines(), one.source.kernel, arch)
    return built, disassemble(built.cubin, one.source.kernel)


def _profiled(one: Launched, compiled: Compiled, profiles: list[nsight.Profile]) -> Profiled:
    """Launches of one kernel, summed."""
    built, sass = compiled
    for profile in profiles:
        ran = [
            Instruction(0, text).opcode[:3] for text, _, _ in profile.instructions
        ]  # RED or REDG, as the tool is old
        if ran != [instruction.opcode[:3] for instruction in sass]:
            raise LaunchError(f"{one.source.kernel}: the SASS that ran is not what nvdisasm shows")

    def total(metric: str) -> float:
        return sum(profile.metrics[metric] for profile in profiles)

    figures = {name: total(metric) for name, metric in _METRICS.items()}
    figures |= {name: profiles[0].metrics[_METRICS[name]] for name in A_LAUNCH}
    for figure in FIGURES:
        if figure.opcodes:
            places = [n for n, instruction in enumerate(sass) if instruction.opcode in figure.opcodes]
            figures[figure.name] = sum(profile.instructions[n][1] for profile in profiles for n in places)
    figures["warp_execution_efficiency"] = figures["thread_instructions"] / (32 * figures["warp_instructions"])
    executions = [
        Ran(placed, sum(p.instructions[n][1] for p in profiles), sum(p.instructions[n][2] for p in profiles))
        for n, placed in enumerate(one.placed(_without_padding(sass)))
    ]
    shared = built.resources.shared_bytes + one.source.carved_bytes + one.request.dynamic_shared
    return Profiled(
        one.source.kernel,
        one.digest,
        len(profiles),
        built.resources.registers,
        shared,
        figures,
        {pipe: int(total(metric)) for pipe, metric in PIPE_METRICS.items()},
        tuple(executions),
    )


def _without_padding(sass: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """All but the NOPs that fill the section up."""
    used = max(n for n, instruction in enumerate(sass) if instruction.opcode != "NOP")
    return sass[: used + 1]


def merged(older: Record, newer: Record) -> Record:
    """The newer cases in place of the older ones, which otherwise stay. Raises SimtbedError where the two were not taken
    with the same GPU and tools."""
    for name in ("gpu", "arch", "toolkit", "profiler"):
        had, has = getattr(older, name), getattr(newer, name)
        if had != has:
            raise SimtbedError(f"the record was taken with {had}, not with {has}: take all of it again")
    return replace(newer, cases=older.cases | newer.cases)


# ------------------------------------------------------------------ as a file
def path_of(device: str) -> Path:
    """Where the record of a device is kept."""
    return FOLDER / f"{device.lower()}.json"


def save(record: Record, path: Path) -> None:
    """Write a record, whole or not at all."""
    content = asdict(record)
    for kernels, profiled in zip(content["cases"].values(), record.cases.values(), strict=True):
        for entry, one in zip(kernels, profiled, strict=True):
            entry["sass"] = [_line(ran) for ran in one.sass]
    write(path, [json.dumps(content, indent=1) + "\n"])


def _line(ran: Ran) -> str:
    instruction, place = ran.placed.instruction, ",".join(map(str, ran.placed.place))
    return f"{instruction.offset:04x} {place} {ran.warps} {ran.threads} {instruction.text}"


def load(path: Path) -> Record:
    """Read a record. Raises SimtbedError, one line, where it is none."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        cases = {
            name: tuple(Profiled(**{**entry, "sass": tuple(map(_ran, entry["sass"]))}) for entry in kernels)
            for name, kernels in content.pop("cases").items()
        }
        return Record(**content, cases=cases)
    except OSError as error:
        raise SimtbedError(f"{path}: {error.strerror or error}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SimtbedError(f"{path}: expected a record that `simtbed hardware record` wrote: {error}") from None


def _ran(text: str) -> Ran:
    offset, place, warps, threads, instruction = text.split(" ", 4)
    line, *calls = map(int, place.split(","))
    return Ran(Placed(Instruction(int(offset, 16), instruction), line, tuple(calls)), int(warps), int(threads))
