"""Figures 7 to 12 of Lu 2012: times, counters and occupancy of the SFS construction."""

from __future__ import annotations

from dataclasses import replace

from simtbed.kernels.sfs.host import pipeline
from simtbed.kernels.sfs.reduction_shared import shared_bytes
from simtbed.language.intrinsics import WARP_SIZE
from simtbed.machine.occupancy import occupancy

from ..claims import Source, Value, counted_by, quotient
from ..measured import Machine
from ..paper import Chart, Figures, Row, Series, Setting, Table, about, cpu, emulator, gpu
from ..predicted import CAVEAT
from ..values import across, extreme, speedups, steps
from .counting import GPU, MODELLED, Count, Genotypes, Modelled, blocks_of, counted, modelled, modelled_blocks
from .timing import KERNELS

FEWER = 8
"""Number of sites for kernels with one warp per merge."""
BLOCKS = (16, 48, 80, 112, 128, 144, 160, 176, 192, 224, 256, 384, 736)
"""Coefficients of b in shared memory; 504 to 12,024 bytes per warp in Figure 10, close to each other around the least time."""
LARGEST_CONSTANT = 2296
"""Bytes per warp up to which the occupancy of Figure 10 is unchanged."""
DEPTHS, THRESHOLDS = (3.0, 10.0, 20.0, 40.0), (1e-9, 1e-6, 1e-3)
"""The range of the choices in Figure 8."""
NOTE = (
    "At least: the time of the most used resource (global memory bandwidth for every access, shared memory, instruction issue, fp64), "
    f"from counts by the rules of a C2070 with loads that bypass L1. {CAVEAT} Algorithm 1 is modelled for {MODELLED} individuals, and its "
    "time is scaled with their square. Depth and threshold of the genotypes are chosen, --depth and --threshold change them."
)


def count_of(setting: Setting, name: str) -> Count:
    """Return the counters of a construction."""
    sites = setting.whole("sites")
    return counted(
        KERNELS[name], Genotypes.of(setting), sites if name == "iterative" else min(FEWER, sites), setting.engine
    )


def model_of(setting: Setting, name: str) -> Modelled:
    """Predict a construction."""
    return modelled(KERNELS[name], Genotypes.of(setting), setting.engine)


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
            about("on the GPU"): name, emulator("KB of global memory per site"): _traffic(count),
            emulator("warp instructions per site"): round(count.a_site("warp_instructions")),
            emulator("barriers per site"): round(count.a_site("barriers")), **model_of(setting, name).cells(),
            emulator("at least"): round(count.least, 1), emulator("for"): count.bound,
        }  # fmt: skip
        for machine, column in ((Machine.gpu, gpu), (Machine.core, cpu), (Machine.cores, cpu)):
            for timing in setting.timings(name, machine):
                row = {**row, column(f"{timing.machine}, microseconds per site"): round(1e6 / timing.rate, 2)}
        rows.append(row)
    values = {f"{slow} / {fast}": _on_gpu(setting, slow, fast) for slow in KERNELS for fast in KERNELS if slow != fast}
    for fast in ("reduction", "reduction, zeros skipped"):
        values[f"CPU, iterative / {fast}"] = speedups(setting, Machine.core, "iterative", fast)
    skip = "reduction, zeros skipped"
    points = [(name, model_of(setting, name).value.value or 0.0) for name in KERNELS]
    return Figures(
        values,
        [Table(_title(setting), rows)],
        [Chart("SFS construction on the GPU, predicted", "", "microseconds per site", [Series("C2070", Source.model, points)], bars=True)],
        {
            "note": NOTE,
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
        row: Row = {about("depth"): depth}
        for threshold in sorted({*THRESHOLDS, float(setting["threshold"])}):
            genotypes = replace(Genotypes.of(setting), depth=depth, threshold=threshold)
            few = counted(KERNELS[names[1]], genotypes, 2, setting.engine)
            row = {**row, emulator(f"saved work, up to {threshold:g} set to 0"): _products(plain) / _products(few)}
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
        texts={"note": NOTE, "saved": saved.value},
    )


def counters_of_skipping(setting: Setting) -> Figures:
    """Figure 9."""
    rows: list[Row] = []
    values: dict[str, list[Value]] = {"instructions": [], "branches": []}
    sizes = sorted({max(2, setting.whole("individuals") // 8), setting.whole("individuals")})
    for n in sizes:
        sites = min(FEWER, setting.whole("sites"))
        both = {
            name: counted(KERNELS[kernel], Genotypes.of(setting, n), sites, setting.engine)
            for name, kernel in (("without", "reduction"), ("with", "reduction, zeros skipped"))
        }
        for key, event in (("instructions", "warp_instructions"), ("branches", "divergent_branches")):
            change = both["with"].a_site(event) / both["without"].a_site(event)
            values[key].append(Value(counted_by(GPU), change, f"N = {n:,}"))
        rows += [
            {
                about("individuals"): n, about("nested-loop optimization"): name,
                emulator("warp instructions per site"): round(count.a_site("warp_instructions")),
                emulator("divergent branches per site"): round(count.a_site("divergent_branches")),
            }
            for name, count in both.items()
        ]  # fmt: skip
    values["instructions"] = values["instructions"][-1:]
    return Figures(values, [Table("The reduction in shared memory", rows)])


# ------------------------------------------------------------------ Figure 10
def buffers(setting: Setting) -> Figures:
    """Figure 10."""
    sites, genotypes = min(4, setting.whole("sites")), Genotypes.of(setting)
    rows: list[Row] = []
    times: dict[int, Value] = {}
    shares: dict[int, float] = {}
    for block in BLOCKS:
        size = shared_bytes(WARP_SIZE, block)
        count, prediction = (
            blocks_of(block, genotypes, sites, setting.engine),
            modelled_blocks(block, genotypes, setting.engine),
        )
        times[size], shares[size] = prediction.value, _occupancy(size)
        rows.append({
            about("shared bytes per warp"): size, emulator("occupancy, %"): shares[size],
            emulator("KB of global memory per site"): _traffic(count),
            emulator("warp instructions per site"): round(count.a_site("warp_instructions")), **prediction.cells(),
        })  # fmt: skip
    best = min(times, key=lambda size: times[size].value or 0.0)
    _, end = times[best].interval or (0.0, 0.0)
    possible = [size for size, time in times.items() if time.interval and time.interval[0] <= end]
    least = [time for size, time in times.items() if size <= LARGEST_CONSTANT]
    constant = {share for size, share in shares.items() if size <= LARGEST_CONSTANT}
    return Figures(
        {
            "best": [replace(times[best], value=best, interval=(min(possible), max(possible)))],
            "larger": extreme(steps(least), least=False),
            "occupancies": [Value(counted_by(GPU), len(constant))],
            "largest": [Value(counted_by(GPU), _largest_without_loss())],
        },
        [Table(_title(setting), rows)],
        [Chart("elapsed time, predicted", "shared bytes per warp", "microseconds per site",
               [Series("C2070", Source.model, [(size, time.value or 0.0) for size, time in times.items()])]),
         Chart("occupancy", "shared bytes per warp", "%", [Series("C2070", Source.emulator, list(shares.items()))])],
        {"note": NOTE, "largest": _largest_without_loss(), "threads": pipeline.THREADS},
    )  # fmt: skip


def _occupancy(size: int) -> float:
    """Return the occupancy in percent. size: shared bytes per warp."""
    return occupancy(GPU, pipeline.THREADS, 0, size * pipeline.THREADS // WARP_SIZE).percent


def _largest_without_loss() -> int:
    """Return the shared bytes per warp, a multiple of 8, beyond which the occupancy falls."""
    most = _occupancy(8)
    return next(size - 8 for size in range(16, GPU.shared_per_sm, 8) if _occupancy(size) < most)
