"""Table 1, Figures 13 and 14 and headline claims of Lu 2012: implementations, normalisation, components."""

from __future__ import annotations

import numpy as np
from simtbed.kernels.sfs import FAMILY
from simtbed.kernels.sfs.host.generate import generate
from simtbed.kernels.sfs.host.pipeline_plain import Merges, merged, summing_to_one
from simtbed.oracles import sfs_loop

from ...launchers import Runner
from ..claims import Value, quotient
from ..measured import Machine
from ..paper import Figures, Row, Setting, Table, about, emulator, gpu
from ..predicted import CAVEAT
from ..values import across, computed, solved, speedups
from .construction import FEWER, model_of
from .counting import (
    Genotypes,
    modelled_normalisation,
    modelled_parsing,
    modelled_summary,
    normalisations,
)
from .timing import LOOPS, TIMED_COMPONENTS


def implementations(setting: Setting) -> Figures:
    """Table 1."""
    divided = summing_to_one(Genotypes(64).vectors(4))[0]
    kernel = merged(divided, Runner(setting.engine), Merges(128, skip=True)).numpy().reshape(4, -1)[:, :129]
    answers = [*(loop(divided) for loop in LOOPS.values()), kernel]
    expected = sfs_loop.iterative(divided)
    differing = sum(int((~np.isclose(answer, expected, rtol=1e-9, atol=0)).sum()) for answer in answers)
    return Figures({"differing": computed(differing, f"of {len(answers) * expected.size:,}")})


def precision(setting: Setting) -> Figures:
    """Figure 13."""
    n = setting.whole("individuals")
    counts = normalisations(n, min(FEWER, setting.whole("sites")), setting.engine)
    predictions = {
        name: modelled_normalisation(n, extended, setting.engine)
        for name, extended in (("extended precision", True), ("logarithms", False))
    }
    timed = {"extended precision": "double-doubles", "logarithms": "logarithms"}
    rows: list[Row] = []
    for name, count in counts.items():
        row: Row = {
            about("normalisation"): name, emulator("warp instructions per site"): round(count.a_site("warp_instructions"))
        }  # fmt: skip
        if name in predictions:
            row = {**row, **predictions[name].cells()}
            for timing in setting.timings(timed[name], Machine.gpu):
                row = {**row, gpu(f"{timing.machine}, microseconds per site"): 1e6 / timing.rate}
        rows.append(row)
    doubles = speedups(setting, Machine.core, "long doubles", "logarithms")
    return Figures(
        {
            "speedup": [
                quotient(predictions["extended precision"].value, predictions["logarithms"].value),
                *speedups(setting, Machine.gpu, "double-doubles", "logarithms"),
            ]
        },
        [Table(f"N = {n:,}", rows)],
        texts={
            "caveat": CAVEAT,
            "doubles": ", ".join(f"{value.value:.2f} times ({value.origin})" for value in doubles),
        },
    )


def overall(setting: Setting) -> Figures:
    """Figure 14."""
    n = setting.whole("individuals")
    predictions = {
        "data parsing": modelled_parsing(n, setting.engine),
        "SFS construction": model_of(setting, "reduction, zeros skipped"),
        "SFS normalization": modelled_normalisation(n, False, setting.engine),
        "post-processing": modelled_summary(n, setting.engine),
    }
    rows: list[Row] = []
    for component, prediction in predictions.items():
        row: Row = {about("component"): component, **prediction.cells()}
        for timing in setting.timings(TIMED_COMPONENTS[component], Machine.gpu):
            row = {**row, gpu(f"{timing.machine}, microseconds per site"): 1e6 / timing.rate}
        rows.append(row)
    components = [prediction.value for prediction in predictions.values()]
    ends = [sum(value.interval[end] if value.interval else 0.0 for value in components) for end in (0, 1)]
    construction = predictions["SFS construction"].value
    total = Value(construction.origin, sum(value.value or 0.0 for value in components), "", (ends[0], ends[1]))
    shares = [quotient(construction, total)]
    for timings in setting.by_machine(TIMED_COMPONENTS.values(), Machine.gpu):
        timing = timings[TIMED_COMPONENTS["SFS construction"]]
        shares.append(Value(timing.origin, 1 / timing.rate / sum(1 / each.rate for each in timings.values())))
    skip = "reduction, zeros skipped"
    return Figures(
        {"share": shares},
        [Table(f"N = {n:,}", rows)],
        texts={
            "caveat": CAVEAT,
            "core": across(setting, "iterative", Machine.core, skip, Machine.gpu),
            "cores": across(setting, skip, Machine.cores, skip, Machine.gpu),
        },
    )


def headlines(setting: Setting) -> Figures:
    """Abstract, and section 5.4: GAMA-CPU on all cores over one, on each machine with 16 of them."""
    problem = generate(7, 2, setting.whole("individuals"), "gama")
    name, threads = "reduction, zeros skipped", []
    for cores in setting.timings(name, Machine.cores):
        for core in setting.timings(name, Machine.core):
            if cores.machine == f"{core.machine}, 16 cores" and cores.dated == core.dated:
                threads.append(Value(cores.origin, cores.rate / core.rate))
    return Figures({"results": solved(FAMILY, problem, "reduction-shared-skip", setting.engine), "threads": threads})
