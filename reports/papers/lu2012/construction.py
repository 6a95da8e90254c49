"""Table 1 and Figures 7 to 14 of Lu 2012: times, counters and occupancy of the construction, normalisation, components."""

from dataclasses import replace

import numpy as np
from simtbed.kernels.sfs import FAMILY
from simtbed.kernels.sfs.host import pipeline
from simtbed.kernels.sfs.host.generate import generate
from simtbed.kernels.sfs.host.pipeline_plain import Merges, merged, summing_to_one
from simtbed.kernels.sfs.reduction_shared import shared_bytes
from simtbed.language.intrinsics import WARP_SIZE
from simtbed.machine.occupancy import occupancy
from simtbed.oracles import sfs_loop

from ...launchers import Runner
from ..claims import Number, Source, Value, counted_by, quotient
from ..measured import Machine
from ..paper import Chart, Figures, Row, Series, Setting, Table
from ..values import across, extreme, solved, speedups, steps, timed_cells
from . import counting
from .counting import GPU, KERNELS, Count, Genotypes, counted

FEWER = 8
"""Number of sites for kernels with one warp per merge."""
BLOCKS = (16, 48, 80, 112, 128, 144, 160, 176, 192, 224, 256, 384, 736)
"""Coefficients of b in shared memory; 504 to 12,024 bytes per warp in Figure 10, close to each other around the least time."""
LARGEST_CONSTANT = 2296
"""Bytes per warp up to which the occupancy of Figure 10 is unchanged."""
DEPTHS, THRESHOLDS = (3.0, 10.0, 20.0, 40.0), (1e-9, 1e-6, 1e-3)
"""The range of the choices in Figure 8."""


def count_of(setting: Setting, name: str) -> Count:
    """Return the counters of a construction."""
    sites = setting.whole("sites")
    counted_sites = sites if name == "iterative" else min(FEWER, sites)
    return counted(KERNELS[name], Genotypes.from_setting(setting), counted_sites, setting.engine)


def model_of(setting: Setting, name: str) -> counting.Modelled:
    """Predict a construction."""
    return counting.modelled(KERNELS[name], Genotypes.from_setting(setting), setting.engine)


def _on_gpu(setting: Setting, slow: str, fast: str) -> list[Value]:
    """Return the speedup of a construction over another, by the time model and on each GPU."""
    predicted = quotient(model_of(setting, slow).value, model_of(setting, fast).value)
    return [predicted, *speedups(setting, Machine.gpu, slow, fast)]


def _traffic(count: Count) -> float:
    sectors = count.a_site("global_load_sectors") + count.a_site("global_store_sectors")
    return round(sectors * count.counters.sector / 1e3, 1)


def constructions(setting: Setting) -> Figures:
    """Figures 7, 11 and 12: all constructions, and their speedups over each other."""
    rows: list[Row] = []
    for name in KERNELS:
        count = count_of(setting, name)
        row: Row = {
            "on the GPU": name, "emulator: KB of global memory per site": _traffic(count),
            "emulator: warp instructions per site": round(count.a_site("warp_instructions")),
            "emulator: barriers per site": round(count.a_site("barriers")), **model_of(setting, name).cells(),
            "emulator: at least": round(count.limit[1], 1), "emulator: for": count.limit[0],
        }  # fmt: skip
        for machine in (Machine.gpu, Machine.core, Machine.cores):
            row |= timed_cells(setting, name, machine, "microseconds per site", 1e6, 2)
        rows.append(row)
    values = {f"{slow} / {fast}": _on_gpu(setting, slow, fast) for slow in KERNELS for fast in KERNELS if slow != fast}
    for fast in ("reduction", "reduction, zeros skipped"):
        values[f"CPU, iterative / {fast}"] = speedups(setting, Machine.core, "iterative", fast)
    skip = "reduction, zeros skipped"
    points = [(name, model_of(setting, name).value.amount) for name in KERNELS]
    return Figures(
        values,
        [Table(_title(setting), rows)],
        [Chart("SFS construction on the GPU, predicted", "", "microseconds per site", [Series("C2070", Source.model, points)], bars=True)],
        {
            "iterative": across(setting, "iterative", Machine.core, "iterative", Machine.gpu),
            "reduction": across(setting, skip, Machine.core, skip, Machine.gpu),
            "together": across(setting, "iterative", Machine.core, skip, Machine.gpu),
        },
    )  # fmt: skip


def _title(setting: Setting) -> str:
    return f"N = {setting.whole('individuals'):,}, depth {setting['depth']:g}, genotypes up to {setting['threshold']:g} set to 0"


# ------------------------------------------------------------------ Figures 8 and 9
def _products(count: Count) -> float:
    """Return the thread instructions of the products per site."""
    return count.counters.at("window[at + t] = st.fma(").total("thread_instructions") / count.sites


def nested_loop(setting: Setting) -> Figures:
    """Figure 8, and the saved work over a range of depths and thresholds."""
    names = ("reduction", "reduction, zeros skipped")
    plain, skip = (count_of(setting, name) for name in names)
    saved = Value(counted_by(GPU), _products(plain) / _products(skip))
    rows: list[Row] = []
    for depth in sorted({*DEPTHS, float(setting["depth"])}):
        row: Row = {"depth": depth}
        for threshold in sorted({*THRESHOLDS, float(setting["threshold"])}):
            genotypes = replace(Genotypes.from_setting(setting), depth=depth, threshold=threshold)
            few = counted(KERNELS[names[1]], genotypes, 2, setting.engine)
            row[f"emulator: saved work, up to {threshold:g} set to 0"] = _products(plain) / _products(few)
        rows.append(row)
    on_gpu, on_cpu = _on_gpu(setting, *names), speedups(setting, Machine.core, *names)
    return Figures(
        {
            "reduction / reduction, zeros skipped": on_gpu,
            "CPU, reduction / reduction, zeros skipped": on_cpu,
            "CPU per work": [quotient(value, saved) for value in on_cpu],
            "GPU per work": [quotient(value, saved) for value in on_gpu],
        },
        [Table(f"Products without skipping over those with, {_title(setting)}", rows)],
        texts={"saved": saved.value},
    )


def counters_of_skipping(setting: Setting) -> Figures:
    """Figure 9."""
    rows: list[Row] = []
    values: dict[str, dict[str, Number]] = {"instructions": {}, "branches": {}}
    sizes = sorted({max(2, setting.whole("individuals") // 8), setting.whole("individuals")})
    for n in sizes:
        sites = min(FEWER, setting.whole("sites"))
        both = {
            name: counted(KERNELS[kernel], Genotypes.from_setting(setting, n), sites, setting.engine)
            for name, kernel in (("without", "reduction"), ("with", "reduction, zeros skipped"))
        }
        for key, event in (("instructions", "warp_instructions"), ("branches", "divergent_branches")):
            values[key][f"N = {n:,}"] = both["with"].a_site(event) / both["without"].a_site(event)
        rows += [
            {
                "individuals": n, "nested-loop optimization": name,
                "emulator: warp instructions per site": round(count.a_site("warp_instructions")),
                "emulator: divergent branches per site": round(count.a_site("divergent_branches")),
            }
            for name, count in both.items()
        ]  # fmt: skip
    values["instructions"] = dict(list(values["instructions"].items())[-1:])
    return Figures(values, [Table("The reduction in shared memory", rows)], rule=counted_by(GPU))


# ------------------------------------------------------------------ Figure 10
def buffers(setting: Setting) -> Figures:
    """Figure 10."""
    sites, genotypes = min(4, setting.whole("sites")), Genotypes.from_setting(setting)
    rows: list[Row] = []
    times: dict[int, Value] = {}
    shares: dict[int, float] = {}
    for block in BLOCKS:
        size = shared_bytes(WARP_SIZE, block)
        count = counting.blocks_of(block, genotypes, sites, setting.engine)
        prediction = counting.modelled_blocks(block, genotypes, setting.engine)
        times[size], shares[size] = prediction.value, _occupancy(size)
        rows.append({
            "shared bytes per warp": size, "emulator: occupancy, %": shares[size],
            "emulator: KB of global memory per site": _traffic(count),
            "emulator: warp instructions per site": round(count.a_site("warp_instructions")), **prediction.cells(),
        })  # fmt: skip
    best = min(times, key=lambda size: times[size].amount)
    _, end = times[best].interval or (0.0, 0.0)
    possible = [size for size, time in times.items() if time.interval and time.interval[0] <= end]
    least = [time for size, time in times.items() if size <= LARGEST_CONSTANT]
    constant = {share for size, share in shares.items() if size <= LARGEST_CONSTANT}
    return Figures(
        {
            "best": [replace(times[best], value=best, interval=(min(possible), max(possible)))],
            "larger": extreme(steps(least), least=False),
            "occupancies": len(constant),
            "largest": _largest_without_loss(),
        },
        [Table(_title(setting), rows)],
        [Chart("elapsed time, predicted", "shared bytes per warp", "microseconds per site",
               [Series("C2070", Source.model, [(size, time.amount) for size, time in times.items()])]),
         Chart("occupancy", "shared bytes per warp", "%", [Series("C2070", Source.emulator, list(shares.items()))])],
        {"largest": _largest_without_loss(), "threads": pipeline.THREADS},
        counted_by(GPU),
    )  # fmt: skip


def _occupancy(size: int) -> float:
    """Return the occupancy in percent. size: shared bytes per warp."""
    return occupancy(GPU, pipeline.THREADS, 0, size * pipeline.THREADS // WARP_SIZE).percent


def _largest_without_loss() -> int:
    """Return the shared bytes per warp, a multiple of 8, beyond which the occupancy falls."""
    most = _occupancy(8)
    return next(size - 8 for size in range(16, GPU.shared_per_sm, 8) if _occupancy(size) < most)


def implementations(setting: Setting) -> Figures:
    """Table 1."""
    divided = summing_to_one(Genotypes(64).vectors(4))[0]
    kernel = merged(divided, Runner(setting.engine), Merges(128, skip=True)).numpy().reshape(4, -1)[:, :129]
    answers = [*(loop(divided) for loop in counting.LOOPS.values()), kernel]
    expected = sfs_loop.iterative(divided)
    differing = sum(int((~np.isclose(answer, expected, rtol=1e-9, atol=0)).sum()) for answer in answers)
    return Figures({"differing": {f"of {len(answers) * expected.size:,}": differing}})


def precision(setting: Setting) -> Figures:
    """Figure 13."""
    n = setting.whole("individuals")
    counts = counting.normalisations(n, min(FEWER, setting.whole("sites")), setting.engine)
    predictions = {
        name: counting.modelled_normalisation(n, extended, setting.engine)
        for name, extended in (("extended precision", True), ("logarithms", False))
    }
    timed = {"extended precision": "double-doubles", "logarithms": "logarithms"}
    rows: list[Row] = []
    for name, count in counts.items():
        row: Row = {
            "normalisation": name, "emulator: warp instructions per site": round(count.a_site("warp_instructions"))
        }  # fmt: skip
        if name in predictions:
            row |= predictions[name].cells()
            row |= timed_cells(setting, timed[name], Machine.gpu, "microseconds per site", 1e6)
        rows.append(row)
    doubles = speedups(setting, Machine.core, "long doubles", "logarithms")
    predicted = quotient(predictions["extended precision"].value, predictions["logarithms"].value)
    values = {"speedup": [predicted, *speedups(setting, Machine.gpu, "double-doubles", "logarithms")]}
    texts = {"doubles": ", ".join(f"{value.value:.2f} times ({value.origin})" for value in doubles)}
    return Figures(values, [Table(f"N = {n:,}", rows)], texts=texts)


def overall(setting: Setting) -> Figures:
    """Figure 14."""
    n = setting.whole("individuals")
    predictions = {
        "data parsing": counting.modelled_parsing(n, setting.engine),
        "SFS construction": model_of(setting, "reduction, zeros skipped"),
        "SFS normalization": counting.modelled_normalisation(n, False, setting.engine),
        "post-processing": counting.modelled_summary(n, setting.engine),
    }
    rows: list[Row] = []
    for component, prediction in predictions.items():
        measured = timed_cells(setting, counting.TIMED_COMPONENTS[component], Machine.gpu, "microseconds per site", 1e6)
        rows.append({"component": component, **prediction.cells(), **measured})
    components = [prediction.value for prediction in predictions.values()]
    ends = [sum(value.interval[end] if value.interval else 0.0 for value in components) for end in (0, 1)]
    construction = predictions["SFS construction"].value
    total = Value(construction.origin, sum(value.amount for value in components), "", (ends[0], ends[1]))
    shares = [quotient(construction, total)]
    for timings in setting.by_machine(counting.TIMED_COMPONENTS.values(), Machine.gpu):
        timing = timings[counting.TIMED_COMPONENTS["SFS construction"]]
        shares.append(Value(timing.origin, 1 / timing.rate / sum(1 / each.rate for each in timings.values())))
    skip = "reduction, zeros skipped"
    texts = {
        "core": across(setting, "iterative", Machine.core, skip, Machine.gpu),
        "cores": across(setting, skip, Machine.cores, skip, Machine.gpu),
    }
    return Figures({"share": shares}, [Table(f"N = {n:,}", rows)], texts=texts)


def headlines(setting: Setting) -> Figures:
    """Abstract, and section 5.4: GAMA-CPU on all cores over one, on each machine with 16 of them."""
    problem = generate(7, 2, setting.whole("individuals"), "gama")
    name, threads = "reduction, zeros skipped", []
    for cores in setting.timings(name, Machine.cores):
        for core in setting.timings(name, Machine.core):
            if cores.machine == f"{core.machine}, 16 cores" and cores.dated == core.dated:
                threads.append(Value(cores.origin, cores.rate / core.rate))
    return Figures({"results": solved(FAMILY, problem, "reduction-shared-skip", setting.engine), "threads": threads})
