"""Random single accesses: generation, the access of each launch, the file of counts."""

import stat
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from simtbed import LaunchError, devices
from simtbed.reports.hardware import nsight, single_accesses_process
from simtbed.reports.hardware.single_accesses import OPERATIONS, launch_all, metrics_of, random_accesses, save, take
from simtbed.reports.profile.accesses import Access, computed, read, report

ROWS = random_accesses()
COUNTERS = {
    "global_load": "global_load", "global_store": "global_store", "global_atomic": "global_atomic",
    "global_compare": "global_atomic", "global_reduce": "global_reduction", "shared_load": "shared_load",
    "shared_store": "shared_store", "shared_atomic": "shared_atomic", "shared_reduce": "shared_atomic",
    "shared_compare": "shared_atomic", "shared_count": "shared_atomic", "local_load": "local_load", "local_store": "local_store",
}  # fmt: skip
"""The emulator's counters, by the first words of an operation."""


def test_a_seed_gives_the_same_accesses() -> None:
    assert len(ROWS) == 2000 and random_accesses() == ROWS and random_accesses(seed=1) != ROWS
    assert len({(row.op, row.bytes, row.lanes) for row in ROWS}) == len(ROWS)


def test_all_kinds_are_generated() -> None:
    kinds = Counter((row.op, row.bytes) for row in ROWS)
    assert set(kinds) == {(name, size) for name, one in OPERATIONS.items() for size in one.types}
    assert min(kinds.values()) >= 15
    active = Counter(sum(lane >= 0 for lane in row.lanes) for row in ROWS)
    assert 0 not in active and 600 < active[32] < 1400 and len(active) > 25
    assert sum(len(set(row.lanes)) < 32 for row in ROWS) > 500, "equal addresses"


@pytest.mark.slow
def test_each_launch_makes_its_access() -> None:
    """The emulator's counters of every kernel are those that the rules give for the access, and a load of the table."""
    wrong = []
    for row, result in zip(ROWS, launch_all(ROWS, "jit"), strict=True):
        totals, expected = result.counters.totals(), computed(row, devices.H200)
        if row.op.startswith("async"):
            continue
        kind = COUNTERS["_".join(row.op.split("_")[:2])]
        names = {"bank_conflicts": "conflicts"}
        if row.op.startswith("local"):
            counts = {"requests": totals[f"{kind}s"] * max(1, row.bytes // 4), "sectors": expected["sectors"]}
        else:
            counts = {name: totals[f"{kind}_{names.get(name, name)}"] for name in expected}
        if row.op == "global_load":
            counts = {"requests": counts["requests"] - 1, "sectors": counts["sectors"] - 4}
        if counts != expected:
            wrong.append((row.op, row.bytes, row.lanes))
    assert wrong == []


def test_words_of_local_memory_are_interleaved() -> None:
    """Word w of all lanes is one line; 16 bytes of each lane are four lines."""

    def sectors(size: int, lanes: Sequence[int]) -> int:
        return computed(Access(2, "local_load", size, tuple(lanes), {}), devices.H200)["sectors"]

    assert sectors(4, [5] * 32) == 4 and sectors(16, [5] * 32) == 16
    assert sectors(4, range(32)) == 32 and sectors(1, [lane % 4 for lane in range(32)]) == 4
    assert sectors(8, [3, *[-1] * 31]) == 2


NCU = """#!/bin/sh
case "$*" in
    *--query-metrics*) cat {folder}/metrics;;
    *--import*) cat {folder}/raw;;
    *) echo "$*" >> {folder}/calls
       for last; do :; done
       {python} {folder}/counted.py "$last" "$*" > {folder}/raw;;
esac
"""
COUNTED = """
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
words = sys.argv[2].split()
metrics = words[words.index("--metrics") + 1].split(",")
print(",".join(f'"{name}"' for name in ["Kernel Name", *metrics]))
print(",".join('""' for _ in ["", *metrics]))
for number, row in enumerate(rows):
    print(",".join(f'"{value}"' for value in ["access", *(100 + number + place for place in range(len(metrics)))]))
"""


def _ncu(folder: Path, without: str = "nothing") -> Path:
    """Write a profiler with the result 100 plus the number of the launch, and more for later metrics."""
    names = {part for row in ROWS for all in metrics_of(row.op).values() for name in all for part in name.split("+")}
    (folder / "metrics").write_text("\n".join(sorted(n.rpartition(".")[0] for n in names if without not in n)))
    (folder / "counted.py").write_text(COUNTED)
    path = folder / "ncu"
    path.write_text(NCU.format(folder=folder, python=sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.slow
def test_counts_are_written_by_kind(tmp_path: Path) -> None:
    rows, target, lengths = ROWS[:88], tmp_path / "accesses.csv", []

    def keep(accesses: Sequence[Access]) -> None:
        save(accesses, target)
        lengths.append(len(accesses))

    accesses = take(_ncu(tmp_path), rows, keep)
    assert sorted(accesses, key=lambda row: row.line) != rows, "with figures"
    calls = (tmp_path / "calls").read_text().splitlines()
    requested = [call.split("--metrics ")[1].split(" ")[0].split(",") for call in calls]
    assert len(lengths) == len(calls) > 8 and lengths[-1] == len(rows) and lengths == sorted(lengths)
    assert all("--clock-control none" in call and "kernel-id" not in call for call in calls)
    assert all(len(names) <= 2 for names in requested), "one pass a launch"
    group = [row for row in accesses if row.op == "global_load"]
    assert [row.measured for row in group] == [{"requests": 99 + n, "sectors": 97 + n} for n in range(len(group))]
    read_back = read(target, measured=True)
    assert [(row.op, row.lanes, row.measured) for row in read_back] == [(r.op, r.lanes, r.measured) for r in accesses]
    assert "mismatches" in report(target, devices.H200, compare=True)[0]


def test_missing_metric_of_the_profiler(tmp_path: Path) -> None:
    """Counts of asynchronous copies fall back to those of instructions; without them a row is omitted."""
    rows = [row for row in ROWS if row.op.startswith("async")][:6]
    (first, *_) = take(_ncu(tmp_path, "l1tex__t"), rows, lambda found: None)
    assert set(first.measured) == {"requests", "sectors"}
    call = (tmp_path / "calls").read_text()
    assert "smsp__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts.sum" in call
    assert take(_ncu(tmp_path, "_"), rows, lambda found: None) == []


def test_missing_launch_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nsight, "measure", lambda *how, **more: [{}])
    with pytest.raises(LaunchError, match="launches were made, Nsight Compute reports 1"):
        take(_ncu(tmp_path), ROWS[:88], lambda found: None)


def test_the_profiled_process_makes_every_access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[tuple[int, str]] = []

    def counted(rows: Sequence[Access], engine: str) -> Sequence[None]:
        launched.extend((row.bytes, engine) for row in rows)
        return [None] * len(rows)

    path = tmp_path / "rows.csv"
    save(ROWS[:5], path)
    monkeypatch.setattr(single_accesses_process, "launch_all", counted)
    single_accesses_process.main(str(path))
    assert launched == [(row.bytes, "cuda") for row in ROWS[:5]]
