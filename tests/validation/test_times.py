"""Microbenchmarks, times and their errors: kernels with correct results on an emulator, records, fits with known results."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
import tomli_w
from simtbed import Kernel
from simtbed.kernels import FAMILIES
from simtbed.machine.device import load
from simtbed.machine.occupancy import occupancy
from simtbed.model.time import Estimate
from simtbed.model.traffic import COLUMNS, Traffic
from simtbed.reports.hardware import (
    errors,
    launches,
    measuring,
    microbenchmarks,
    nsight,
    timed_process,
    timing,
    traffic,
)
from simtbed.reports.hardware.errors import Compared, Errors
from simtbed.reports.hardware.launches import Timed
from simtbed.reports.hardware.measuring import LaunchResult, cycle
from simtbed.runtime.engine import Outcome, Request
from simtbed.runtime.registry import engine_named

from tests.reports.conftest import Simtbed, simtbed  # noqa: F401
from tests.validation.kernels import KERNELS
from tests.validation.launches.kinds import cases
from tests.validation.launches.variants import variants

SMALL = replace(st.devices.H200, sms=4, l2=1 << 20)


# ------------------------------------------------------------------ microbenchmarks
def test_a_cycle_visits_every_element_once() -> None:
    next, at, visited = cycle(1024, 32), 0, []
    for _ in range(32):
        visited.append(at)
        at = int(next[at])
    assert at == 0 and sorted(visited) == [*range(0, 1024, 32)]


def test_chases_follow_the_array() -> None:
    run, next = timing.Runner("jit"), cycle(1 << 12, 32)
    arrays = run(
        microbenchmarks.chase, 1, 1, {"next": next, "out": np.zeros(2, np.int64), "warm": 5, "hops": 12}
    ).arrays
    at = 0
    for _ in range(17):
        at = int(next[at])
    assert arrays["out"].tolist() == [1, at]  # an emulator's clock counts its readings
    args = {"next": cycle(32, 1), "out": np.zeros(2, np.int64), "hops": 32}
    assert run(microbenchmarks.shared_chase, 1, 32, args).arrays["out"].tolist() == [1, 0]


def test_addresses_of_reads() -> None:
    """Two blocks of 32 threads, three iterations of 16 reads at a stride of 32, from (8 * block + 4 * iteration) mod 16 on."""
    x, run = np.arange(1024, dtype=np.float32), timing.Runner("jit")
    args = {"x": x, "out": np.zeros(64, np.float32), "mask": 15, "step": 4, "apart": 8, "turns": 3}
    starts = np.array([[(8 * block + 4 * turn) % 16 for turn in range(3)] for block in range(2)])
    places = starts[:, None, :, None] + np.arange(32)[None, :, None, None] + 32 * np.arange(16)
    assert run(microbenchmarks.reads, 2, 32, args).arrays["out"].tolist() == x[places].sum((2, 3)).reshape(-1).tolist()
    wide = {"x": x.reshape(-1, 4), "out": np.zeros(32, np.float32), "mask": 15, "step": 4, "turns": 3}
    quads = (4 * np.arange(3))[None, :, None] + np.arange(32)[:, None, None] + 32 * np.arange(4)
    sums = run(microbenchmarks.wide_reads, 1, 32, wide).arrays["out"]
    assert sums.tolist() == x.reshape(-1, 4)[quads].sum((1, 2, 3)).tolist()
    all_of = {"x": x.reshape(-1, 4), "out": np.zeros(32, np.float32), "n": 256}
    assert run(microbenchmarks.flush, 1, 32, all_of).arrays["out"].sum() == x.sum()


def test_atomic_chains_use_their_lines() -> None:
    x = np.zeros(64, np.int32)
    x[::32] = (0, 32)
    args = {"x": x, "out": np.zeros(3, np.int64), "lines": 2, "hops": 3}
    assert timing.Runner("jit")(microbenchmarks.atomic_lines, 1, 1, args).arrays["out"].tolist() == [1, 1, 32]
    index = np.array([0, 1, 1, 3] * 16, np.int32)
    added = timing.Runner("jit")(microbenchmarks.adds, 2, 32, {"index": index, "out": np.zeros(4, np.int32)})
    assert added.arrays["out"].tolist() == [16, 32, 0, 16]


def test_addresses_of_stores() -> None:
    run = timing.Runner("jit")
    later = {"out": np.full(2 * 64 * 4, -1, np.float32), "turns": 2, "WORDS": 4, "LATER": 3}
    stored = run(microbenchmarks.stores_later, 1, 64, later).arrays["out"].reshape(2, 64, 4)
    powers = np.float32(0.125) ** np.arange(8, dtype=np.float32).reshape(2, 1, 4)
    assert (stored == np.arange(64, dtype=np.float32)[None, :, None] * powers).all()
    queued = {"x": np.zeros(3 << 10, np.float32), "out": np.zeros(1, np.int64), "STORES": 3}
    written = run(microbenchmarks.stores_queued, 1, 32, queued).arrays["x"]
    assert np.flatnonzero(written).tolist() == list(range(0, 3 << 10, 32))


def test_open_lines_from_times_of_stores() -> None:
    """Stores to up to 24 lines are merged, up to 90 cycles after the first one; a queue has 6 instructions after the executing one."""
    sequential = {str(lines): 10.0 if lines <= 24 else 19.0 for lines in range(8, 42, 2)}
    delayed = {later: 20.0 + 4 * later for later in range(0, 52, 4)}
    later = {str(n): each if each <= 90 else max(160.0, each) for n, each in delayed.items()}
    queued = {str(n): 40.0 + 5 * n + 70 * max(0, n - 7) for n in range(1, 25)}
    times: dict[str, dict[str, float]] = {"in turn": sequential, "later": later, "queued": queued}
    assert measuring.of_stores(times, 4.0) == {"open_lines": 24, "open_cycles": 84, "queue": 6}
    same = {name: dict.fromkeys(of, 1.0) for name, of in times.items()}
    assert measuring.of_stores(same, 4.0) == {}


class FakeGpu:
    """A GPU with known values: 2 GHz; fixed cycles per operation of a chain, fixed milliseconds per launch."""

    CYCLES: Mapping[str, float] = {
        "float_chain": 4 * 1024, "double_chain": 8 * 1024, "shuffle_chain": 23 * 1024, "barriers": 20 * 1024,
        "product_chain": 5 * 1024, "convert_chain": 20 * 1024,
    }  # fmt: skip

    def __call__(self, kernel: Kernel, grid: int, block: int, args: Mapping[str, Any]) -> LaunchResult:
        name, milliseconds = kernel.__name__, 1.002
        out = np.zeros(args["out"].shape, np.int64)
        out[0] = self.CYCLES.get(name, 0)
        if name == "spin":
            out[0], milliseconds = 8 * args["turns"], 8e-6 * args["turns"] / 2 + 0.01
        if name in ("chase", "shared_chase"):
            words = len(args["next"])
            cycles = 30 if name == "shared_chase" else 38 if words <= 1 << 14 else 300 if words < 1 << 20 else 700
            out[0] = args["hops"] * cycles
        if name == "atomic_lines":
            out[:64] = [args["hops"] * (300 if line % 2 else 400) for line in range(64)]
        if name == "pick":
            raise st.LaunchError("out of memory")
        return LaunchResult({"out": out}, {"empty": 0.002, "wide_copy": 0.502}.get(name, milliseconds))


def measure_fake_gpu() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the row and the values of the fake GPU."""
    saved: list[tuple[str, str]] = []
    device = replace(st.devices.H200, l2=1 << 22)
    timing.device_row(device, FakeGpu(), "2026-11-22", lambda row, values: saved.append((row, values)), scale=16)
    assert len(saved) == len(measuring.SECTIONS), "written after each section"
    return tomllib.loads(saved[-1][0]), json.loads(saved[-1][1])


def test_device_values_from_times() -> None:
    row, saved = measure_fake_gpu()
    measured = row["timing"]
    assert row["clock"] == 2000 and row["like"] == "H200"
    names = ("alu", "fp64", "shuffle", "sfu", "barrier", "shared", "l1", "l2", "l2_far", "atomic", "launch")
    assert [measured[name] for name in names] == [4, 8, 23, 16, 20, 26, 34, 296, 396, 346, 2000]
    assert measured["dram"] == 696
    # 2 microseconds divided by the number of blocks
    assert measured["block_interval"] == round(2e-3 * 2e6 / ((1 << 18) // 16), 2)
    # a launch's operations divided by the cycles of a millisecond and by SMs
    of_lanes = 32 * 32 * 132 * 2048 / (2e6 * 132)
    assert saved["figures"]["lanes_a_cycle"]["fp32"] == pytest.approx(of_lanes, abs=0.06)
    assert saved["figures"]["lanes_a_cycle"]["alu"] == pytest.approx(2 * of_lanes, abs=0.06)


def test_failed_section_does_not_stop_others() -> None:
    row, saved = measure_fake_gpu()
    assert saved["failed"] == {"device memory": "out of memory"}
    assert "failed: device memory" in row["timing"]["source"]
    assert "dram_share" not in row["timing"] and row["timing"]["dram"] == 696


def test_a_measured_row_is_a_device(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(tomli_w.dumps(measure_fake_gpu()[0]))
    device = load(path)
    assert device.timing.l2_far == 396 and device.sms == 132
    assert "not measured: schedulers, issue, vote" in device.timing.source


def test_all_sections_run_on_an_emulator() -> None:
    trouble: dict[str, str] = {}
    bench = measuring.Bench(SMALL, timing.Runner("jit"), 256)
    measuring.measure_all(bench, lambda part, of: trouble.update({part: of}))
    timed = {"rates", "caches"}  # an emulator's time of 0 is no divisor
    assert {part for part, of in trouble.items() if of} <= timed and set(trouble) == set(measuring.SECTIONS)


# ------------------------------------------------------------------ times
@pytest.mark.parametrize(
    "pattern", ["polynomial64 132 * 64", "conflicts stride 32*", "matmul 512 8x8", "rows*64", "histogram*256"]
)
def test_the_timed_kernels_have_no_faults(pattern: str) -> None:
    (case,) = launches.matching(cases(), pattern)
    assert not st.launch(case.kernel, grid=case.grid, block=case.block, args=dict(case.make())).faults


def test_every_variant_is_timed() -> None:
    timed = list(variants())
    assert len(timed) == sum(len(family.variants) for family in FAMILIES.values())
    assert {case.name for case in timed}.isdisjoint({case.name for case in cases()})
    (example,) = launches.matching(timed, "sfs reduction-shared-scaled example")
    args = dict(example.make())
    assert not st.launch(
        example.kernel, grid=example.grid, block=example.block, args=args, shared=example.shared
    ).faults


class Emulated:
    """An engine that measures times as a GPU does."""

    def run(self, request: Request) -> Outcome:
        outcome = engine_named("jit").run(request)
        for name, array in request.device_arrays.items():
            if name in outcome.buffers:
                array.replace(request.shaped({name: outcome.buffers.pop(name)})[name])
        return outcome

    def time_behind(self, before: Request, request: Request, repeats: int) -> list[float]:
        if request.specialisation.summary.name == "exponentials":
            raise st.LaunchError("no such instruction")
        self.run(request)
        return [0.5 if before.specialisation.summary.name == "flush" else 0.25] * repeats


def test_a_record_of_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "clocks", lambda: "a GPU, 1980 MHz")
    monkeypatch.setattr(timing, "compile_ahead", lambda cases: None)
    monkeypatch.setattr(timing, "CudaEngine", Emulated)
    chosen = launches.matching(cases(), "*o*n*als 132 blocks 64") + launches.matching(
        cases(), "polynomial 132 blocks 64"
    )
    path, lengths = tmp_path / "times.json", []

    def save_record(record: Mapping[str, Any]) -> None:
        lengths.append(len(record["launches"]) + len(record["failed"]))
        timing.save(record, path)

    timing.take(chosen, SMALL, save_record, lambda name: None)
    assert lengths == [1, 2, 2], "written after each launch"
    record = errors.load(path)
    (times,) = record["launches"].values()
    assert {**times, "source": ""} == {"warm_us": 250.0, "cold_us": 500.0, "registers": 0, "source": ""}
    assert record["failed"] == {"exponentials 132 blocks 64": "no such instruction"}
    assert record["empty_us"] == 250.0 and record["clocks"] == ["a GPU, 1980 MHz"] * 2
    with pytest.raises(st.SimtbedError, match=r"no case fits 'nothing'"):
        launches.matching(cases(), "nothing")


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use an engine without a GPU for times."""
    monkeypatch.setattr(timing, "compile_ahead", lambda cases: None)
    monkeypatch.setattr(timing, "CudaEngine", Emulated)


def take_times(cases: Sequence[Timed], earlier: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return timing.take(cases, SMALL, lambda record: None, lambda name: None, earlier)


@pytest.mark.usefixtures("emulated")
def test_validation_kernels_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "WARM", 1)
    monkeypatch.setattr(timing, "COLD", 1)
    some = KERNELS[::16]
    record = take_times([one.small for one in some])
    assert record["failed"] == {} and len(record["launches"]) == len(some)


@pytest.mark.usefixtures("emulated")
def test_a_launch_whose_answer_is_wrong_has_no_time() -> None:
    case = next(one.small for one in KERNELS if one.name == "hash_insert")
    assert list(take_times([case])["launches"]) == [case.name]
    wrong = replace(case, answer=lambda args: {"table": args["keys"] + 1})
    record = take_times([wrong])
    assert record["failed"] == {case.name: f"{case.name}: table is not what NumPy computes"} and not record["launches"]


@pytest.mark.usefixtures("emulated")
def test_times_of_the_same_kernel_are_reused() -> None:
    case = next(one.small for one in KERNELS if one.name == "gather")
    earlier = take_times([case])
    earlier["launches"][case.name]["warm_us"] = 17.0
    assert take_times([case], earlier)["launches"] == earlier["launches"]
    earlier["launches"][case.name]["source"] = "of another kernel"
    assert take_times([case], earlier)["launches"][case.name]["warm_us"] == 250.0


@pytest.mark.usefixtures("emulated")
def test_changed_inputs_are_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A breadth-first search visits each level once; each launch starts with the original depths."""
    case = next(one.small for one in KERNELS if one.name == "bfs_step")
    counts, run = [], Emulated.run

    def watched(self: Emulated, request: Request) -> Outcome:
        if "depth" in request.arguments:
            counts.append(int((request.arguments["depth"] == 4).sum()))
        return run(self, request)

    monkeypatch.setattr(Emulated, "run", watched)
    take_times([case])
    assert len(counts) > timing.WARM + timing.COLD and set(counts) == {0}


def test_zero_time_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    timing.save({"device": "H200", "launches": {"a": {"warm_us": 0.0, "cold_us": 1.0}}}, path)
    with pytest.raises(st.SimtbedError, match=r"expected a record .*warm_us: expected a number > 0"):
        errors.load(path)


def test_metrics_of_every_second_launch() -> None:
    raw = """==PROF== connected
"ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum","lts__t_sectors.sum"
"","","byte","byte","sector"
"0","copy","1,024","n/a","12"
"1","copy","2,048.5","64","13"
"""
    names = ("dram__bytes_read.sum", "dram__bytes_write.sum", "no.sum")
    assert nsight.parse_metrics(raw, names) == [
        {"dram__bytes_read.sum": 1024.0}, {"dram__bytes_read.sum": 2048.5, "dram__bytes_write.sum": 64.0},
    ]  # fmt: skip
    with pytest.raises(st.LaunchError, match="profiled no launch"):
        nsight.parse_metrics("==PROF== nothing\n", names)


# ------------------------------------------------------------------ errors
def rows() -> list[Compared]:
    """Return launches of four kernels with times of 0.7 of the memory latency and 1.03 of the cycles."""
    draw, limits = np.random.default_rng(1), {"DRAM": 8.0, "fp32": 3.0, "issue": 4.0, "latency": 9.0, "atomics": 20.0}
    none = np.zeros((1, 1, COLUMNS), np.int64)
    traffic = Traffic(none[0], none, none[0, :, :1], none[0, 0], 0, 0, 0, 0, 1, 1, 1)
    estimate = Estimate(10.0, 8.0, 12.0, "DRAM", limits, traffic, occupancy(st.devices.H200, 256, 32, 0), 100, ())
    result = []
    for kernel in "abcd":
        for size in range(6):
            once, more = draw.uniform(10, 100, 2)
            times = {loaded: once + loaded * more for loaded in errors.LOADED}
            row = Compared(f"{kernel} 1 {size}", kernel, 1.0, times, 2.0, estimate, 30.0, {}, None)
            result.append(replace(row, measured_us=row.time(0.7, 1.03)))
    return result


def test_constants_are_fitted() -> None:
    assert errors.fitted(rows()) == (0.7, 1.03)
    assert Errors.from_pairs((time, row.measured_us) for row, time in errors.left_out(rows())).worst < 1e-9


def test_a_roofline_is_the_larger_of_two() -> None:
    (row, *_) = rows()
    assert row.roofline == 8.0  # neither latency nor atomic operations


def test_residuals_are_percentiles() -> None:
    (row, *_) = rows()
    pairs = [(replace(row, measured_us=float(n)), 10.0) for n in range(1, 22)]
    ((bound, percentiles),) = errors.residuals(pairs).items()
    assert bound == "DRAM"
    np.testing.assert_allclose(percentiles, (0.2, 2.0, 21))


def test_kernels_are_left_out_of_their_fit() -> None:
    """Times of one kernel with different constants do not change its own constants."""
    changed = [replace(row, measured_us=3 * row.measured_us) if row.kernel == "a" else row for row in rows()]
    ratios = {row.name: time / row.measured_us for row, time in errors.left_out(changed)}
    assert all(ratios[f"a 1 {n}"] == pytest.approx(1 / 3) for n in range(6))


def test_intervals_are_of_other_kernels() -> None:
    assert errors.covered(errors.left_out(rows())) == 1.0
    wrong = [(row, 10 * row.measured_us if row.kernel == "a" else row.measured_us) for row in rows()]
    assert errors.covered(wrong) == 0.75


def test_the_time_lost_by_a_choice() -> None:
    base = rows()[0]
    measured = [
        replace(base, name=f"k 2^20 {block}", measured_us=time) for block, time in ((64, 10.0), (128, 8.0), (256, 12.0))
    ]
    for predicted, share in (((5.0, 6.0, 7.0), 0.25), ((5.0, 4.0, 7.0), 0.0)):
        ((name, lost),) = errors.lost_by_choices(list(zip(measured, predicted, strict=True)))
        assert name == "k 2^20" and lost == pytest.approx(share)


def test_errors_are_shares_of_the_measured() -> None:
    summary = Errors.from_pairs([(11.0, 10.0), (8.0, 10.0), (10.0, 10.0)])
    assert (summary.mean, summary.p90, summary.worst) == pytest.approx((0.1, 0.18, 0.2))


def test_launches_are_profiled_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first group has the first launch of each kernel. Warm caches have the contents of the previous launch, cold ones
    are empty. After a missing metric, fewer metrics are requested."""
    calls: list[tuple[int, int, Sequence[str]]] = []

    def measure(
        ncu: Path, command: Sequence[str], metrics: Sequence[str], caches: Sequence[str]
    ) -> list[dict[str, float]]:
        names = json.loads(Path(command[-2]).read_text())
        calls.append((len(names), len(metrics), caches))
        if len(metrics) > len(traffic.METRICS):
            raise st.LaunchError("no such metric")
        Path(command[-3]).write_text("".join(f"{name}\n" for name in names))
        return [dict.fromkeys(traffic.METRICS, 2.0 if caches == nsight.WARM else 3.0)] * len(names)

    monkeypatch.setattr(nsight, "measure", measure)
    monkeypatch.setattr(traffic, "AT_ONCE", 2)
    groups = list(traffic.take(Path("ncu"), ["a 1 64", "a 2 64", "b 1 64"], [launches.TIMED]))
    assert [list(values) for values in groups] == [["a 1 64", "b 1 64"], ["a 2 64"]]
    values = groups[1]["a 2 64"]
    assert values["dram_bytes"] == 4.0
    assert values["cold"]["dram_bytes"] == 6.0 and set(values["cold"]["metrics"]) == set(traffic.METRICS)
    few, all_of_them = len(traffic.METRICS), len(traffic.METRICS) + len(traffic.MORE)
    assert calls == [
        (2, few, nsight.WARM), (2, all_of_them, nsight.COLD), (2, few, nsight.COLD), (1, few, nsight.WARM), (1, few, nsight.COLD),
    ]  # fmt: skip


def test_the_profiled_process_makes_each_launch_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays that a launch changes are restored before the next one."""
    launched: list[tuple[str, bool]] = []

    class Launch:
        def __init__(self, request: Request) -> None:
            self.request = request

        def __enter__(self) -> Launch:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def run(self, times: int) -> None:
            fresh = all(array.remote is None for array in self.request.device_arrays.values())
            launched.append((self.request.specialisation.summary.name, fresh))

    monkeypatch.setattr(timed_process, "DeviceLaunch", Launch)
    listed, log = tmp_path / "names.json", tmp_path / "log.txt"
    names = ["bfs_step 65536 64", "strided 2^20/8 64"]
    listed.write_text(json.dumps(names))
    timed_process.main(str(log), str(listed), [launches.TIMED])
    assert [name for name, _ in launched] == ["bfs_step"] * 2 + ["strided"] * 2
    assert log.read_text().splitlines() == names


def test_hit_rates_of_nsight_compute() -> None:
    metrics = dict(zip(traffic.METRICS, (100.0, 75.0, 50.0, 10.0, 4e6, 1e6), strict=True))
    assert traffic.figures(metrics) == {"l1_hit": 0.75, "l2_hit": 0.2, "dram_bytes": 5e6}
    close = {"l1_hit": 0.72, "l2_hit": 0.3, "dram_bytes": 5.4e6}
    assert traffic.within([(close, traffic.figures(metrics))]) == {"l1_hit": 1.0, "l2_hit": 0.0, "dram_bytes": 1.0}


# ------------------------------------------------------------------ commands
def test_the_errors_of_a_record(simtbed: Simtbed, tmp_path: Path) -> None:  # noqa: F811
    names = [case.name for case in cases() if case.name.startswith(("polynomial 132", "exponentials 132", "conflicts"))]
    path = tmp_path / "times.json"
    times = {name: {"warm_us": 10.0 + n, "cold_us": 12.0, "registers": 16} for n, name in enumerate(names)}
    path.write_text(json.dumps({"device": "H200", "launches": times}))
    result = simtbed("hardware", "errors", str(path), "--only", "[pec]*[4-9]*", "--json")
    assert result.code == 0, result.err
    content = json.loads(result.out)
    assert set(content["errors"]) == {"model, kernel left out", "model, as it is", "model, source counted", "roofline"}
    assert content["launches"] == len(content["rows"]) and content["rows"][0]["time_us"] > 0
    text = simtbed("hardware", "errors", str(path), "--only", "[pec]*[4-9]*").out
    assert "roofline" in text and "fitted to all" in text


def test_other_files_are_refused(simtbed: Simtbed, tmp_path: Path) -> None:  # noqa: F811
    path = tmp_path / "times.json"
    path.write_text("{}")
    assert "expected a record that `simtbed hardware times` wrote" in simtbed("hardware", "errors", str(path)).refused()


def test_measure_needs_a_gpu(simtbed: Simtbed, tmp_path: Path) -> None:  # noqa: F811
    if "engine: cuda: works" in simtbed("doctor").out:
        pytest.skip("there is a GPU")
    path = tmp_path / "row.toml"
    assert simtbed("hardware", "measure", "-o", str(path)).code == 3
    assert not path.exists()
