"""Files of accesses: every measured row is reproduced, and malformed rows are reported."""

import json
from collections import Counter
from pathlib import Path

import pytest
from simtbed.machine.device import C2070, H200, K40
from simtbed.reports.hardware.single_accesses import random_accesses
from simtbed.reports.profile.accesses import Access, AccessError, computed, read, report

MEASURED = Path(__file__).with_name("h200_access_patterns.csv")
RANDOM = Path(__file__).with_name("h200_random_accesses.csv.gz")
"""Results of `simtbed hardware accesses`, except copies of 16 bytes: the profiler's metrics omit copies that bypass L1."""
REDUCTIONS = Path(__file__).with_name("h200_reductions.csv")
ROWS = read(MEASURED, measured=True)
COALESCED = " ".join(map(str, range(32)))
HEADER = "op,bytes,lanes,requests,sectors,wavefronts,bank_conflicts"
GOOD = f"global_load,4,{COALESCED},1,4,,"


def test_the_measured_file_is_whole() -> None:
    assert len(ROWS) == 1520
    assert len({(row.op, row.bytes) for row in ROWS}) == 25


@pytest.mark.parametrize("op", sorted({row.op for row in ROWS}))
def test_every_measured_row_is_reproduced(op: str) -> None:
    rows = [row for row in ROWS if row.op == op]
    differing = [(row.line, computed(row, H200), row.measured) for row in rows if computed(row, H200) != row.measured]
    assert differing == []


def _by_whole_addresses(row: Access) -> int:
    """Sectors, if each counted as often as its most frequent address."""
    counts = Counter(lane for lane in row.lanes if lane >= 0)
    most: dict[int, int] = {}
    for element, lanes in counts.items():
        sector = element * row.bytes // 32
        most[sector] = max(most.get(sector, 0), lanes)
    return sum(most.values())


def test_reductions_measured_to_find_their_rule() -> None:
    """Random pairs of words of one sector, varied: shifted, permuted, removed one by one. The exceptions to the rule
    are pinned: each of these counts one sector more."""
    rows = read(REDUCTIONS, measured=True)
    beyond = {row.line: row.measured["sectors"] - computed(row, H200)["sectors"] for row in rows}
    assert len(rows) == 316
    assert {line: more for line, more in beyond.items() if more} == {53: 1, 158: 1, 162: 1, 166: 1}
    whole = [_by_whole_addresses(row) for row in rows]
    assert sum(row.measured["sectors"] != sectors for row, sectors in zip(rows, whole, strict=True)) > 100


def test_random_accesses() -> None:
    """2,000 random accesses, measured on an H200. A few atomics on global memory differ by a sector or two."""
    rows = read(RANDOM, measured=True)
    wrong = Counter("_".join(row.op.split("_")[:2]) for row in rows if computed(row, H200) != row.measured)
    assert len(rows) == 1419
    assert {(row.op, row.bytes, row.lanes) for row in rows} <= {
        (row.op, row.bytes, row.lanes) for row in random_accesses()
    }
    assert wrong == {"global_atomic": 8, "global_compare": 1, "global_reduce": 3}
    beyond = [row for row in rows if row.op.startswith("global") and computed(row, H200) != row.measured]
    assert {row.measured["sectors"] - computed(row, H200)["sectors"] for row in beyond} == {-1, 1, 2}


def test_atomics_are_compared_by_a_key() -> None:
    """Random atomics on global memory, with and without a result. Comparing whole addresses would fail for 31."""
    rows = [
        row
        for row in read(RANDOM, measured=True)
        if row.op.startswith(("global_atomic", "global_compare", "global_reduce"))
    ]
    assert sum(row.measured["sectors"] != computed(row, H200)["sectors"] for row in rows) == 12
    assert sum(row.measured["sectors"] != _by_whole_addresses(row) for row in rows) == 31


def test_the_report_of_the_measured_file_agrees() -> None:
    assert report(MEASURED, H200, compare=True) == ("mismatches 0 of 1520", 0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "accesses.csv"
    path.write_text(f"{HEADER}\n{GOOD}\nshared_load,8,{COALESCED},,,1,0\n")
    return path


def test_rows_that_differ_are_shown_and_counted(file: Path) -> None:
    text, code = report(file, H200, compare=True)
    lines = text.splitlines()
    assert code == 1
    assert lines[-1] == "mismatches 1 of 2"
    assert lines[2].split() == ["3", "shared_load", "8", "2", "(1)", "0", "(0)"]
    assert lines[4].split() == ["op", "bytes", "differ", "of"] and lines[6].split() == ["shared_load", "8", "1", "1"]
    assert not any("global_load" in line for line in lines)


def test_the_comparison_as_json(file: Path) -> None:
    text, code = report(file, H200, as_json=True, compare=True)
    measured = {"wavefronts": 1, "bank_conflicts": 0}
    row = {"line": 3, "op": "shared_load", "bytes": 8, "wavefronts": 2, "bank_conflicts": 0, "measured": measured}
    kinds = [{"op": "shared_load", "bytes": 8, "differ": 1, "of": 1}]
    expected = {"device": "H200", "rows": [row], "kinds": kinds, "mismatches": 1, "of": 2}
    assert (json.loads(text), code) == (expected, 1)


def test_without_comparison_figures_are_not_needed(tmp_path: Path) -> None:
    path = tmp_path / "accesses.csv"
    path.write_bytes(f"lanes,op,bytes\r\n{COALESCED},global_load,4\r\n".encode())
    text, code = report(path, H200)
    assert code == 0
    assert text.splitlines()[-1].split() == ["2", "global_load", "4", "1", "4"]
    entry = {"line": 2, "op": "global_load", "bytes": 4, "requests": 1, "sectors": 4}
    assert json.loads(report(path, H200, as_json=True)[0]) == {"device": "H200", "rows": [entry]}


def test_the_device_decides() -> None:
    scattered, doubles = tuple(32 * i for i in range(32)), tuple(range(32))
    load = Access(2, "global_load", 4, doubles, {})
    assert [computed(load, d)["sectors"] for d in (C2070, K40, H200)] == [1, 4, 4]  # whole lines on Fermi
    assert computed(Access(2, "global_store", 4, doubles, {}), C2070)["sectors"] == 4
    assert [computed(Access(2, "shared_load", 8, doubles, {}), d)["wavefronts"] for d in (K40, H200)] == [1, 2]
    assert computed(Access(2, "shared_load", 4, scattered, {}), H200) == {"wavefronts": 32, "bank_conflicts": 31}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (GOOD.replace("global_load", "global_fetch"), "op 'global_fetch': expected one of global_load, global_store,"),
        (GOOD.replace(",4,0 ", ",3,0 "), "bytes '3': expected 1, 2, 4, 8 or 16 for global_load"),
        (GOOD.replace("global_load,4", "shared_atomic_add,2"), "bytes '2': expected 4 or 8 for shared_atomic_add"),
        (GOOD.replace(" 31", ""), "lanes: expected 32 whole numbers, got 31"),
        (GOOD.replace(" 31", " x"), "lane 31 'x': expected a whole number of at least -1"),
        (GOOD.replace(" 31", " -2"), "lane 31 '-2': expected a whole number of at least -1"),
        (GOOD.replace(" 31", " 9" + "0" * 15), "lane 31 '9000000000000000': expected a whole number of at least -1"),
        (GOOD.replace(",1,4,,", ",1,,,"), "sectors '': expected a whole number of at least 0"),
        (GOOD.replace(",1,4,,", ",1,1e3,,"), "sectors '1e3': expected a whole number of at least 0"),
        (GOOD + ",7", "expected 7 columns, got more"),
        ("global_load,4", "lanes: expected 32 whole numbers, got 0"),
    ],
)
def test_a_malformed_row_is_named_by_its_line(row: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "accesses.csv"
    path.write_text(f"{HEADER}\n{GOOD}\n{row}\n")
    with pytest.raises(AccessError) as caught:
        read(path, measured=True)
    assert str(caught.value).startswith(f"{path}:3: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"op,bytes\n", r":1: no column lanes; expected the columns op, bytes, lanes"),
        (b"", r":1: no column op, bytes, lanes; expected"),
        (b"\xff\xfe\x00\x01", r": expected a CSV text"),
        (b'op,bytes,lanes\nglobal_load,4,"' + b"0" * 200_000, r": expected a CSV text"),
    ],
)
def test_a_file_that_is_not_one_of_accesses(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "accesses.csv"
    path.write_bytes(content)
    with pytest.raises(AccessError, match=message):
        read(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"none\.csv: No such file"):
        read(tmp_path / "none.csv")
