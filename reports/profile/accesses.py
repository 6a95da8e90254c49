"""Counters of warp accesses in a CSV file by the memory rules of a device, and comparison with measured counters."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from simtbed.errors import SimtbedError
from simtbed.kernels import InputError
from simtbed.kernels.files import contents
from simtbed.machine import banks, coalescing
from simtbed.machine.device import Device
from tabulate import tabulate

REDUCTIONS = ("add", "float_add", "min", "max", "and", "or", "xor")
ATOMICS = (*REDUCTIONS, "exchange", "inc", "dec")
GLOBAL: dict[str, coalescing.Counter] = {
    "global_load": coalescing.count,
    "global_store": coalescing.count,
    "async_copy_load": coalescing.count,
    **{f"global_atomic_{name}": coalescing.count_atomic for name in ATOMICS},
    "global_compare_swap": coalescing.count_atomic,
    **{f"global_reduce_{name}": coalescing.count_atomic for name in REDUCTIONS},
    "local_load": coalescing.count_local,
    "local_store": coalescing.count_local,
}
SHARED = {
    "shared_load": "load",
    "shared_store": "store",
    "async_copy_store": "copy",
    **{f"shared_atomic_{name}": "atomic" for name in ATOMICS},
    **{f"shared_reduce_{name}": "atomic" for name in REDUCTIONS},
    "shared_count": "count",
    "shared_compare_swap": "swap",
}
"""Operations, by the names of `ir.access.Operation`."""
COLUMNS = ("op", "bytes", "lanes")
GLOBAL_COUNTERS = ("requests", "sectors")
SHARED_COUNTERS = ("wavefronts", "bank_conflicts")
COUNTERS = (*GLOBAL_COUNTERS, *SHARED_COUNTERS)
MAX_INDEX = 1 << 48
MAX_FIELD = 1 << 16
"""Characters of a field. The limit of the csv module is global; other libraries raise it."""


class AccessError(SimtbedError):
    """An invalid file of accesses; the message has file, line and the expected value."""


@dataclass(frozen=True)
class Access:
    """One row of the file: an access of one warp.

    lanes: element index of each of the 32 lanes; -1 for an inactive lane.
    measured: the measured counters of the row, if requested.
    """

    line: int
    op: str
    bytes: int
    lanes: tuple[int, ...]
    measured: dict[str, int]


def counters_of(op: str) -> tuple[str, ...]:
    """Return the names of the counters of an operation."""
    return GLOBAL_COUNTERS if op in GLOBAL else SHARED_COUNTERS


def read(path: str | Path, measured: bool = False) -> list[Access]:
    """Read a CSV file with the columns op, bytes, lanes and, with `measured`, the counters.

    Raises AccessError, one line, at the first invalid row.
    """
    try:
        text = contents(Path(path)).decode("utf-8-sig")
        return list(_rows(path, io.StringIO(text, newline=""), measured))
    except InputError as error:
        raise AccessError(str(error)) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise AccessError(f"{path}: expected a CSV text: {error}") from None


def _rows(path: str | Path, stream: Iterator[str], measured: bool) -> Iterator[Access]:
    reader = csv.DictReader(stream, restkey="", restval="")
    columns = (*COLUMNS, *(COUNTERS if measured else ()))
    missing = [name for name in columns if name not in (reader.fieldnames or ())]
    if missing:
        raise AccessError(f"{path}:1: no column {', '.join(missing)}; expected the columns {', '.join(columns)}")
    for fields in reader:
        place = f"{path}:{reader.line_num}"
        if any(len(text) > MAX_FIELD for text in fields.values()):
            raise AccessError(f"{path}: expected a CSV text: a field of more than {MAX_FIELD} characters")
        if "" in fields:
            raise AccessError(f"{place}: expected {len(reader.fieldnames or ())} columns, got more")
        op, size = fields["op"], _bytes(place, fields["op"], fields["bytes"])
        lanes = _lanes(place, fields["lanes"])
        counters = {name: _number(place, name, fields[name]) for name in counters_of(op)} if measured else {}
        yield Access(reader.line_num, op, size, lanes, counters)


def _bytes(place: str, op: str, text: str) -> int:
    if op not in GLOBAL and op not in SHARED:
        raise AccessError(f"{place}: op {op!r}: expected one of {', '.join([*GLOBAL, *SHARED])}")
    sizes = ["1", "2", "4", "8", "16"] if op.endswith(("load", "store")) else ["4", "8"]
    if op.startswith("async"):
        sizes = ["4", "8", "16"]
    if text.strip() not in sizes:
        raise AccessError(f"{place}: bytes {text!r}: expected {', '.join(sizes[:-1])} or {sizes[-1]} for {op}")
    return int(text)


def _lanes(place: str, text: str) -> tuple[int, ...]:
    words = text.split()
    if len(words) != 32:
        raise AccessError(f"{place}: lanes: expected 32 whole numbers, got {len(words)}")
    return tuple(_number(place, f"lane {lane}", word, least=-1) for lane, word in enumerate(words))


def _number(place: str, name: str, text: str, least: int = 0) -> int:
    digits = text.strip().removeprefix("-" if least < 0 else "")
    if digits.isascii() and digits.isdigit() and len(digits) < 16 and least <= int(text) < MAX_INDEX:
        return int(text)
    raise AccessError(f"{place}: {name} {text!r}: expected a whole number of at least {least}")


def computed(access: Access, device: Device) -> dict[str, int]:
    """Return the counters of one access by the rules of the device."""
    if access.op in GLOBAL:
        sector = device.load_sector if access.op == "global_load" else device.sector
        traffic = coalescing.of_warp(GLOBAL[access.op], access.lanes, access.bytes, sector, device.line)
        return {"requests": traffic.requests, "sectors": traffic.sectors}
    operation = "store" if access.op == "async_copy_store" and access.bytes == 16 else SHARED[access.op]
    kind = banks.kind_of(operation, device)
    cost = banks.of_warp(kind, access.lanes, access.bytes, device.banks, device.bank_width)
    return {"wavefronts": cost.wavefronts, "bank_conflicts": cost.conflicts}


def report(path: str | Path, device: Device, *, as_json: bool = False, compare: bool = False) -> tuple[str, int]:
    """Return the output of `simtbed access` and its exit code: 1 if a compared row differs.

    With `compare` the output has only the differing rows, then their number by kind, and last `mismatches N of M` (three
    keys of the JSON output).
    Raises AccessError for an invalid file.
    """
    rows = read(path, measured=compare)
    answers = [(row, computed(row, device)) for row in rows]
    kinds = Counter((row.op, row.bytes) for row in rows)
    if compare:
        answers = [(row, counters) for row, counters in answers if counters != row.measured]
    if as_json:
        entries = [_entry(row, counters, compare) for row, counters in answers]
        content: dict[str, object] = {"device": device.name, "rows": entries}
        if compare:
            content |= {"kinds": _kinds(answers, kinds), "mismatches": len(answers), "of": len(rows)}
        text = json.dumps(content, indent=1)
    else:
        text = _table(answers, compare)
        if compare:
            table = tabulate(_kinds(answers, kinds), headers="keys", disable_numparse=True)
            text = f"{text}\n\n{table}\n\n" * bool(answers) + f"mismatches {len(answers)} of {len(rows)}"
    return text, int(compare and bool(answers))


def _kinds(
    answers: Sequence[tuple[Access, dict[str, int]]], kinds: Counter[tuple[str, int]]
) -> list[dict[str, object]]:
    """Count the differing rows by operation and size."""
    differ = Counter((row.op, row.bytes) for row, _ in answers)
    return [{"op": op, "bytes": size, "differ": n, "of": kinds[op, size]} for (op, size), n in differ.items()]


def _entry(row: Access, counters: dict[str, int], compare: bool) -> dict[str, object]:
    entry: dict[str, object] = {"line": row.line, "op": row.op, "bytes": row.bytes, **counters}
    return entry | {"measured": row.measured} if compare else entry


def _table(answers: Sequence[tuple[Access, dict[str, int]]], compare: bool) -> str:
    """Return one line per access; compared counters are written `computed (measured)`."""

    def cell(row: Access, counters: dict[str, int], name: str) -> str:
        if name not in counters:
            return ""
        return f"{counters[name]} ({row.measured[name]})" if compare else str(counters[name])

    lines = [[row.line, row.op, row.bytes, *(cell(row, counters, n) for n in COUNTERS)] for row, counters in answers]
    return tabulate(lines, headers=["line", "op", "bytes", *COUNTERS], disable_numparse=True)
