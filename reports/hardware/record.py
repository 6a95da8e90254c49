"""Record of a GPU: answers and counters of cases, how to take them, one JSON file."""

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from simtbed import LaunchError, SimtbedError, devices
from simtbed.compiled.instruction_counts import LocatedInstruction
from simtbed.compiled.kernel_launches import KernelLaunches
from simtbed.documents import json_of, require
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.engine import describe
from simtbed.engines.cuda.printer import Source, cuda_source
from simtbed.engines.cuda.sass import Instruction
from simtbed.escaping import printable
from simtbed.kernels.files import contents, write

from . import nsight
from .answers import AnswerLauncher, Entry, answers_of, take_answers, take_operations
from .cases import Case, OperationCase, data_set_cases, find_all
from .profiled import InstructionCount, Profiled, take_counters
from .recording import RecordingLauncher

RECORDS = Path("tests/validation/records")
"""The records of this project, in a checkout."""


@dataclass(frozen=True)
class Record:
    """Answers and counters of one GPU. device: the name of its row in `devices`; gpu: its own name.

    counters: Nsight Compute's, by case. answers: by case, digests of printed kernels and of outputs; of published
    data sets also times, registers and the largest rounding difference. operations: rows of the op table, by case.
    waiting: features and variants, "FAMILY VARIANT", with a text or an answer not yet recorded.
    """

    device: str
    gpu: str
    arch: str
    driver: str
    toolkit: str
    profiler: str
    dated: str
    counters: dict[str, tuple[Profiled, ...]]
    answers: dict[str, Entry]
    operations: dict[str, Entry]
    waiting: tuple[str, ...] = ()


# ------------------------------------------------------------------ taking a record
class Emulated(NamedTuple):
    """A case on the emulator: its answers, and its launches if they are to be profiled."""

    answers: AnswerLauncher
    launched: list[KernelLaunches]


def take(names: Sequence[str], only: str = "*", data: Path | None = None) -> tuple[Record, list[str]]:
    """Run the cases with names that match `only` on this machine's GPU, and profile them; data: a folder of published
    data sets for the variants. Return the record and the differences from the emulator; with differences, no launch
    is profiled.

    Raises UnavailableError without a GPU, nvcc, nvdisasm or ncu, and LaunchError if one of them fails.
    """
    ncu = nsight.find_ncu()
    cases = find_all(names, only)
    profiled = [case for case in cases if isinstance(case, Case)]
    data_sets = data_set_cases(data, only) if data else []
    operations = [case for case in cases if isinstance(case, OperationCase)]
    emulated = _emulate(names, only, data, len(profiled), [case.name for case in (*profiled, *data_sets)])
    gpu = describe()
    devices_named = [
        name for name in devices.DEVICES if name in gpu["device"].replace("RTX ", "RTX").replace("-", " ").split()
    ]
    if not devices_named:
        raise LaunchError(f"{gpu['device']} is none of the devices known: add its row to emulator/machine/devices.toml")
    _compile(emulated.values(), operations, gpu["arch"])
    timed = frozenset(case.name for case in data_sets)
    answers, differences = take_answers(
        {case.name: case for case in (*profiled, *data_sets)}, _answers(emulated), timed
    )
    rows, differing = take_operations(operations)
    launched = {case.name: emulated[case.name].launched for case in profiled}
    profiles = launched and not differences and not differing  # ncu fails without launches
    counters = take_counters(ncu, gpu["arch"], launched, names, only) if profiles else {}
    record = Record(
        device=devices_named[0],
        gpu=gpu["device"],
        arch=gpu["arch"],
        driver=gpu["driver"],
        toolkit=nvcc.version(nvcc.find_nvcc()),
        profiler=nsight.version(ncu),
        dated=date.today().isoformat(),
        counters=counters,
        answers=answers,
        operations=rows,
    )
    return record, differences + differing


def _answers(emulated: dict[str, Emulated]) -> dict[str, AnswerLauncher]:
    return {name: one.answers for name, one in emulated.items()}


def _emulate(
    names: Sequence[str], only: str, data: Path | None, profiled: int, cases: list[str]
) -> dict[str, Emulated]:
    """Run each case on the emulator, in parallel processes. profiled: number of the first cases with recorded launches."""
    run = partial(_emulate_one, names, only, data, profiled)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return dict(zip(cases, pool.map(run, range(len(cases))), strict=True))


def _emulate_one(names: Sequence[str], only: str, data: Path | None, profiled: int, number: int) -> Emulated:
    launcher = RecordingLauncher("jit")
    if number >= profiled:
        assert data is not None, "cases beyond those of the functions are data sets"
        return Emulated(answers_of(data_set_cases(data, only)[number - profiled], "jit"), [])
    case = [case for case in find_all(names, only) if isinstance(case, Case)][number]
    case.run(launcher)
    return Emulated(answers_of(case, "jit"), launcher.kernels)


def _compile(emulated: Iterable[Emulated], operations: Iterable[OperationCase], arch: str) -> None:
    """Fill the cache of compiled kernels, in parallel."""
    requests = [case.prepare()[0] for case in operations]
    sources: list[Source] = [source for one in emulated for source in one.answers.sources.values()]
    sources += [cuda_source(request.program, request.block, cluster=request.cluster) for request in requests]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda s: nvcc.build(s.with_lines(), s.kernel, arch), {s.text: s for s in sources}.values()))


def merged(older: Record, newer: Record) -> Record:
    """Return the older record with the newer cases. Raises SimtbedError if GPU or tools differ."""
    for name in ("gpu", "arch", "driver", "toolkit", "profiler"):
        had, has = getattr(older, name), getattr(newer, name)
        if had != has:
            raise SimtbedError(f"the record was taken with {had}, not with {has}: take all of it again")
    recorded = {*newer.answers, *newer.operations}
    recorded |= {" ".join(name.split(" ")[:2]) for name in newer.answers if name.count(" ") == 2}
    return replace(
        newer,
        counters=older.counters | newer.counters,
        answers=older.answers | newer.answers,
        operations=older.operations | newer.operations,
        waiting=tuple(name for name in older.waiting if name not in recorded),
    )


# ------------------------------------------------------------------ files
def path_of(device: str) -> Path:
    """Return the record of a device in a checkout. Raises SimtbedError if there is none."""
    path = RECORDS / f"{device.lower()}.json"
    if not path.exists():
        raise SimtbedError(
            f"{path}: no such file: run this in a checkout of simtbed, or name a record: --device FILE.json"
        )
    return path


def save(record: Record, path: Path) -> None:
    """Write a record atomically."""
    content = asdict(record)
    for kernels, profiled in zip(content["counters"].values(), record.counters.values(), strict=True):
        for entry, kernel in zip(kernels, profiled, strict=True):
            entry["sass"] = [_line(count) for count in kernel.sass]
    write(path, [as_lines(content)])


def as_lines(content: Mapping[str, Any]) -> str:
    """Return JSON with one line for each member of the top-level objects."""
    members = []
    for name, value in content.items():
        text = json.dumps(value)
        if isinstance(value, dict) and value:
            text = (
                "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(member)}" for key, member in value.items()) + "\n}"
            )
        members.append(f"{json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(members) + "\n}\n"


def _line(count: InstructionCount) -> str:
    instruction, place = count.placed.instruction, ",".join(map(str, count.placed.place))
    return f"{instruction.offset:04x} {place} {count.warps} {count.threads} {instruction.text}"


def load(path: Path) -> Record:
    """Read a record. Raises SimtbedError for another file."""
    from .record_schema import Record as Schema  # late: msgspec

    try:
        content: dict[str, Any] = json_of(contents(path))
        require(content, Schema)
        counters = {
            name: tuple(
                Profiled(**{**entry, "sass": tuple(map(_instruction_count, entry["sass"]))}) for entry in kernels
            )
            for name, kernels in content.pop("counters").items()
        }
        return Record(**content | {"waiting": tuple(content["waiting"])}, counters=counters)
    except ValueError as error:
        raise SimtbedError(f"{printable(path)}: expected a record that `simtbed record` wrote: {error}") from None


def _instruction_count(text: str) -> InstructionCount:
    offset, place, warps, threads, instruction = text.split(" ", 4)
    line, *calls = map(int, place.split(","))
    return InstructionCount(
        LocatedInstruction(Instruction(int(offset, 16), instruction), line, tuple(calls)), int(warps), int(threads)
    )
