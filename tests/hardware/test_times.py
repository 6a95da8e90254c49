"""Microbenchmarks, times and their errors: kernels that are right on an emulator, records, fits whose answer is known."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Kernel
from simtbed.kernels import FAMILIES
from simtbed.machine.device import load
from simtbed.reports.hardware import errors, microbenchmarks, timing, traffic
from simtbed.reports.hardware.errors import Compared, Errors
from simtbed.reports.hardware.microbenchmarks import Taken, cycle
from simtbed.reports.hardware.timed_kernels import cases
from simtbed.reports.hardware.timed_variants import variants

from tests.reports.conftest import Simtbed, simtbed  # noqa: F401

SMALL = replace(st.devices.H200, sms=4, l2=1 << 20)


# ------------------------------------------------------------------ microbenchmarks
def test_a_cycle_goes_through_every_element_once() -> None:
    next, at, seen = cycle(1024, 32), 0, []
    for _ in range(32):
        seen.append(at)
        at = int(next[at])
    assert at == 0 and sorted(seen) == [*range(0, 1024, 32)]


def test_chases_go_where_the_array_says() -> None:
    run, next = timing.Runner("jit"), cycle(1 << 12, 32)
    found = run(microbenchmarks.chase, 1, 1, {"next": next, "out": np.zeros(2, np.int64), "WARM": 5, "HOPS": 12}).arrays
    at = 0
    for _ in range(17):
        at = int(next[at])
    assert found["out"].tolist() == [1, at]  # an emulator's clock counts its readings
    held = {"next": cycle(32, 1), "out": np.zeros(2, np.int64), "HOPS": 32}
    assert run(microbenchmarks.shared_chase, 1, 32, held).arrays["out"].tolist() == [1, 0]


def test_reads_are_of_all_numbers() -> None:
    args = {"x": np.arange(1 << 12, dtype=np.float32), "out": np.zeros(512, np.float32), "N": 1 << 12, "TIMES": 2}
    found = timing.Runner("jit")(microbenchmarks.read_again, 2, 256, args).arrays["out"]
    assert found.reshape(2, 256).sum(axis=1).tolist() == [2.0 * sum(range(1 << 12))] * 2


def test_atomic_chains_stay_on_their_lines() -> None:
    x = np.zeros(64, np.int32)
    x[::32] = (0, 32)
    args = {"x": x, "out": np.zeros(3, np.int64), "LINES": 2, "HOPS": 3}
    assert timing.Runner("jit")(microbenchmarks.atomic_lines, 1, 1, args).arrays["out"].tolist() == [1, 1, 32]
    added = timing.Runner("jit")(microbenchmarks.one_address, 3, 64, {"out": np.zeros(1, np.int32)})
    assert added.arrays["out"].tolist() == [192]


class Pretended:
    """A GPU whose figures are known: 2 GHz; a chain takes so many cycles an operation, a launch so many milliseconds."""

    CYCLES: Mapping[str, float] = {
        "float_chain": 4 * 1024, "double_chain": 8 * 1024, "shuffle_chain": 23 * 1024, "barriers": 20 * 64,
        "shared_chase": 30 * 4096, "spin": 2e6,
    }  # fmt: skip

    def __call__(self, kernel: Kernel, grid: int, block: int, args: Mapping[str, Any]) -> Taken:
        name = kernel.__name__
        out = np.zeros(args["out"].shape, np.int64)
        out[0] = self.CYCLES.get(name, 0)
        if name == "chase":
            words = len(args["next"])
            out[0] = args["HOPS"] * (38 if words <= 4096 else 300 if words < 1 << 20 else 700)
        if name == "atomic_lines":
            out[:64] = [64 * (300 if line % 2 else 400) for line in range(64)]
        return Taken({"out": out}, {"spin": 1.0, "empty": 0.002, "copy": 0.502}.get(name, 1.002))


def test_figures_follow_from_what_launches_took() -> None:
    device = st.devices.H200
    row = tomllib.loads(timing.device_row(device, Pretended(), "2026-11-22"))
    found = row["timing"]
    assert row["clock"] == 2000 and row["like"] == "H200"
    names = ("alu", "fp64", "shuffle", "barrier", "shared", "l1", "l2", "l2_far", "dram", "atomic", "launch")
    assert [found[name] for name in names] == [4, 8, 23, 20, 26, 34, 246, 346, 696, 346, 2000]
    assert found["dram_share"] == min(1000, round(8 * (1 << 28) / 0.5 / 1e6 / device.bandwidth * 1000))
    assert found["atomic_interval"] == max(1, round(2e6 / (1 << 22)))


def test_a_measured_row_is_a_device(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(timing.device_row(st.devices.H200, Pretended(), "2026-11-22"))
    device = load(path)
    assert device.timing.l2_far == 346 and device.sms == 132
    assert "not measured: schedulers, issue, sfu" in device.timing.source


@pytest.mark.slow
def test_all_of_them_run_on_an_emulator() -> None:
    found = microbenchmarks.measure(SMALL, timing.Runner("jit"), scale=256)
    assert set(found) <= {"clock", *vars(SMALL.timing)}


# ------------------------------------------------------------------ times
def test_there_are_enough_launches_each_with_a_name_of_its_own() -> None:
    found = list(cases())
    assert len({case.name for case in found}) == len(found) >= 96
    assert len({case.kernel.__name__ for case in found}) >= 15


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern", ["polynomial64 132 * 64", "conflicts stride 32*", "matmul 512 8x8", "rows*64", "histogram*256"]
)
def test_the_timed_kernels_have_no_faults(pattern: str) -> None:
    (case,) = timing.chosen(cases(), pattern)
    assert not st.launch(case.kernel, grid=case.grid, block=case.block, args=dict(case.make())).faults


@pytest.mark.slow
def test_every_variant_is_timed() -> None:
    found = list(variants())
    assert len(found) == sum(len(family.variants) for family in FAMILIES.values())
    assert {case.name for case in found}.isdisjoint({case.name for case in cases()})
    (one,) = timing.chosen(found, "sfs reduction-shared example")
    assert not st.launch(one.kernel, grid=one.grid, block=one.block, args=dict(one.make()), shared=one.shared).faults


def test_a_record_of_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "clocks", lambda: "a GPU, 1980 MHz")
    chosen = timing.chosen(cases(), "polynomial 132 blocks 64")
    record = timing.take(chosen, SMALL, engine="jit", done=lambda name: None)
    assert list(record["launches"]) == ["polynomial 132 blocks 64"] and record["clocks"] == ["a GPU, 1980 MHz"] * 2
    path = tmp_path / "times.json"
    timing.save(record, path)
    with pytest.raises(st.SimtbedError, match=r"expected a record .* not above 0"):  # an emulator measures no time
        errors.load(path)
    with pytest.raises(st.SimtbedError, match=r"no case fits 'nothing'"):
        timing.chosen(cases(), "nothing")


# ------------------------------------------------------------------ errors
def rows() -> list[Compared]:
    """Launches of four kernels whose times follow from their limits with sharpness 2, chains of 0.8, instructions of 0.65."""
    draw = np.random.default_rng(1)
    made = []
    for kernel in "abcd":
        for size in range(6):
            limits = dict(
                zip(("issue", "fp32", "L1", "DRAM", "latency"), draw.uniform(1, 100, 5).tolist(), strict=True)
            )
            row = Compared(f"{kernel} 1 {size}", kernel, 1.0, limits, 2.0, {}, None)
            made.append(replace(row, measured_us=row.time(2.0, 0.8, 0.65)))
    return made


def test_constants_that_made_the_times_are_found() -> None:
    assert errors.fitted(rows()) == (2.0, 0.8, 0.65)
    assert Errors.of((time, row.measured_us) for row, time in errors.left_out(rows())).worst < 1e-9


def test_a_kernel_is_tried_without_itself() -> None:
    """Times of one kernel that follow other constants do not move its own constants."""
    made = [replace(row, measured_us=3 * row.measured_us) if row.kernel == "a" else row for row in rows()]
    of = {row.name: time / row.measured_us for row, time in errors.left_out(made)}
    assert all(of[f"a 1 {n}"] == pytest.approx(1 / 3) for n in range(6))


def test_the_time_lost_by_a_choice() -> None:
    base = rows()[0]
    measured = [
        replace(base, name=f"k 2^20 {block}", measured_us=time) for block, time in ((64, 10.0), (128, 8.0), (256, 12.0))
    ]
    for predicted, share in (((5.0, 6.0, 7.0), 0.25), ((5.0, 4.0, 7.0), 0.0)):
        ((name, lost),) = errors.lost_by_choices(list(zip(measured, predicted, strict=True)))
        assert name == "k 2^20" and lost == pytest.approx(share)


def test_errors_are_shares_of_the_measured() -> None:
    found = Errors.of([(11.0, 10.0), (8.0, 10.0), (10.0, 10.0)])
    assert (found.mean, found.p90, found.worst) == pytest.approx((0.1, 0.18, 0.2))


def test_hit_rates_of_nsight_compute() -> None:
    metrics = dict(zip(traffic.METRICS, (100.0, 75.0, 50.0, 10.0, 4e6, 1e6), strict=True))
    assert traffic.figures(metrics) == {"l1_hit": 0.75, "l2_hit": 0.2, "dram_bytes": 5e6}
    close = {"l1_hit": 0.72, "l2_hit": 0.3, "dram_bytes": 5.4e6}
    assert traffic.within([(close, traffic.figures(metrics))]) == {"l1_hit": 1.0, "l2_hit": 0.0, "dram_bytes": 1.0}


# ------------------------------------------------------------------ commands
@pytest.mark.slow
def test_the_errors_of_a_record(simtbed: Simtbed, tmp_path: Path) -> None:  # noqa: F811
    names = [case.name for case in cases() if case.name.startswith(("polynomial 132", "exponentials 132", "conflicts"))]
    path = tmp_path / "times.json"
    times = {name: {"warm_us": 10.0 + n, "cold_us": 12.0, "registers": 16} for n, name in enumerate(names)}
    path.write_text(json.dumps({"device": "H200", "launches": times}))
    ran = simtbed("hardware", "errors", str(path), "--only", "[pec]*[4-9]*", "--json")
    assert ran.code == 0, ran.err
    content = json.loads(ran.out)
    assert set(content["errors"]) == {"model, kernel left out", "model, as it is", "roofline"}
    assert content["launches"] == len(content["rows"]) and content["rows"][0]["time_us"] > 0
    text = simtbed("hardware", "errors", str(path), "--only", "[pec]*[4-9]*").out
    assert "roofline" in text and "fitted to all" in text


def test_what_is_no_record_is_refused(simtbed: Simtbed, tmp_path: Path) -> None:  # noqa: F811
    path = tmp_path / "times.json"
    path.write_text("{}")
    assert "expected a record that `simtbed hardware times` wrote" in simtbed("hardware", "errors", str(path)).refused()


def test_without_a_gpu_nothing_is_measured(simtbed: Simtbed, tmp_path: Path) -> None:  # noqa: F811
    if "engine: cuda: works" in simtbed("doctor").out:
        pytest.skip("there is a GPU")
    path = tmp_path / "row.toml"
    assert simtbed("hardware", "measure", "-o", str(path)).code == 3
    assert not path.exists()
