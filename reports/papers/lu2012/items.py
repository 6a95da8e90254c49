"""Tables, figures, algorithms and headline claims of Lu 2012, compared with counters by the rules of a C2070."""

from __future__ import annotations

import numpy as np
from simtbed.kernels.sfs import FAMILY, LU
from simtbed.kernels.sfs.host.generate import generate
from simtbed.kernels.sfs.host.pipeline_plain import Merges, merged, summing_to_one
from simtbed.oracles import sfs_loop

from ...launchers import Runner
from ..claims import COMPUTED, Claim, Origin, exactly, more_than, near, predicted_for, same_results
from ..measured import Machine
from ..paper import Item, Paper, Parameter, Row, Setting, Shown, Table, about, emulator, gpu, model, paper
from ..predicted import CAVEAT
from ..ratios import near_speedups, speedups
from . import algorithms, construction
from .construction import FEWER, TOLERANCE, today
from .counting import GPU, modelled, modelled_normalisation, modelled_parsing, modelled_summary, normalisations, vectors
from .timing import LOOPS, TIMED_COMPONENTS, benchmarks


# ------------------------------------------------------------------ Table 1, Figures 13 and 14
def implementations(setting: Setting) -> Shown:
    """Table 1."""
    names = ("realSFS (improved)", "GAMA-CPU", "GAMA")
    ours = ("sfs_loop.iterative", "sfs_loop.reduced, one core or all", "reduction-shared-skip")
    kinds = (("CPU", "no", "iterative"), ("CPU", "yes", "reduction"), ("GPU", "", "reduction"))
    rows: list[Row] = [
        {about("implementation"): name, paper("runs on"): where, paper("multi-threaded"): threads, paper("SFS construction"): how,
         emulator("here"): here}
        for name, here, (where, threads, how) in zip(names, ours, kinds, strict=True)
    ]  # fmt: skip
    divided = summing_to_one(vectors(64, 4))[0]
    kernel = merged(divided, Runner(setting.engine), Merges(128, skip=True)).numpy().reshape(4, -1)[:, :129]
    answers = [*(loop(divided) for loop in LOOPS.values()), kernel]
    expected = sfs_loop.iterative(divided)
    differing = sum(int((~np.isclose(answer, expected, rtol=1e-9, atol=0)).sum()) for answer in answers)
    return Shown(
        [Claim("three implementations of one computation",
               [exactly(COMPUTED, f"products that differ by more than 1e-9, of {len(answers) * expected.size:,}", differing, 0)],
               main=True)],
        "All three are included, the first two as compiled loops.",
        [Table("Implementations", rows)],
    )  # fmt: skip


def precision(setting: Setting) -> Shown:
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
            row = {**row, model("C2070, microseconds per site"): round(predictions[name].time, 2),
                   model("bound by"): predictions[name].bound}  # fmt: skip
            for timings in setting.by_machine([timed[name]], Machine.gpu):
                timing = timings[timed[name]]
                row = {**row, gpu(f"{timing.machine}, microseconds per site"): 1e6 / timing.rate}
        rows.append(row)
    ratio = predictions["extended precision"].time / predictions["logarithms"].time
    return Shown(
        [
            Claim("(b) on the GPU logarithms are about 4.6 times as fast as extended precision", [
                near(predicted_for(GPU), "speedup over double-doubles", ratio, 4.6, TOLERANCE),
                *near_speedups(setting, Machine.gpu, "double-doubles", "logarithms", 4.6, TOLERANCE),
            ], main=True, remark="The library of the paper (DaMoN 2010) is replaced by double-doubles with an exponent."),
            Claim("(a) on the CPU about 3 times", [], remark="The paper uses the library ARPREC, which is not compared here. Over "
                  "long doubles: " + ", ".join(f"{ratio:.2f} times ({origin})"
                                              for origin, ratio in speedups(setting, Machine.core, "long doubles", "logarithms")) + "."),
        ],
        "The speedup depends on the rate of double precision: an H200 has 64 lanes per SM, a C2070 16.",
        [Table(f"N = {n:,}", rows)],
        note=CAVEAT,
    )  # fmt: skip


def overall(setting: Setting) -> Shown:
    """Figure 14."""
    n = setting.whole("individuals")
    times = {
        "data parsing": modelled_parsing(n, setting.engine),
        "SFS construction": modelled("reduction-shared-skip", n, setting.engine),
        "SFS normalization": modelled_normalisation(n, False, setting.engine),
        "post-processing": modelled_summary(n, setting.engine),
    }
    kernels = {
        "data parsing": "parse", "SFS construction": "merge_shared", "SFS normalization": "normalise",
        "post-processing": "summarise",
    }  # fmt: skip
    rows: list[Row] = []
    for component, prediction in times.items():
        row: Row = {
            about("component"): component, emulator("kernel"): f"`{kernels[component]}`",
            model("C2070, microseconds per site"): round(prediction.time, 2), model("bound by"): prediction.bound,
        }  # fmt: skip
        for timings in setting.by_machine([TIMED_COMPONENTS[component]], Machine.gpu):
            timing = timings[TIMED_COMPONENTS[component]]
            row = {**row, gpu(f"{timing.machine}, microseconds per site"): 1e6 / timing.rate}
        rows.append(row)
    total = sum(prediction.time for prediction in times.values())
    shares = [(predicted_for(GPU), times["SFS construction"].time / total)]
    for timings in setting.by_machine(TIMED_COMPONENTS.values(), Machine.gpu):
        seconds = [1 / timing.rate for timing in timings.values()]
        construction_timing = timings[TIMED_COMPONENTS["SFS construction"]]
        shares.append((construction_timing.origin, 1 / construction_timing.rate / sum(seconds)))
    return Shown(
        [
            Claim("(b) GAMA is about 47 times realSFS", [], main=True,
                  remark="realSFS is not included. " + today(setting, "iterative", "reduction, zeros skipped")),
            Claim("(b) GAMA is about 3.5 times GAMA-CPU in 16 threads", [], main=True,
                  remark=today(setting, "reduction, zeros skipped", "reduction, zeros skipped", Machine.cores)),
            Claim("(a) GAMA is 15 to 60 times realSFS, by component", [], remark="realSFS is not included."),
            Claim("SFS construction dominates (section 2.2)",
                  [more_than(origin, "share of construction in the four components", share, 0.5) for origin, share in shares]),
        ],
        "Construction dominates; speedups over realSFS and the CPU of the paper need that program and that machine.",
        [Table(f"N = {n:,}", rows)],
        note=CAVEAT + " The paper describes neither parsing nor post-processing. Here a thread parses a decimal of Beagle text, and a "
        "block reduces a site to its expected frequency, its probability of variation and its most likely number of minor alleles.",
    )  # fmt: skip


def headlines(setting: Setting) -> Shown:
    """Abstract and conclusion."""
    n = setting.whole("individuals")
    problem = generate(7, 2, n, "gama")
    agreement = FAMILY.compare(
        FAMILY.solve(problem, "reduction-shared-skip", Runner(setting.engine)), FAMILY.oracle(problem)
    )
    return Shown(
        [
            Claim(f"GAMA enables MAF computation for up to a thousand individuals, here {n:,}",
                  [same_results(COMPUTED, agreement)], main=True),
            Claim("GAMA outperforms a single-threaded tool by around 47 times", [], remark="See Figure 14."),
            Claim("GAMA outperforms GAMA-CPU with 16 threads by around 3.5 times", [], remark="See Figure 14."),
            Claim("16 threads are around 7 times as fast as one (section 5.4)", [
                near(origin, "speedup over one core", ratio, 7, TOLERANCE) for origin, ratio in _speedup_of_threads(setting)
            ]),
        ],
        "The number of individuals is reproduced; the speedups need realSFS and the machine of the paper.",
    )  # fmt: skip


def _speedup_of_threads(setting: Setting) -> list[tuple[Origin, float]]:
    """Return the speedup of GAMA-CPU on all cores over one, on each machine with 16 of them."""
    name, ratios = "reduction, zeros skipped", []
    for whole in setting.by_machine([name], Machine.cores):
        cores = whole[name]
        for single in setting.by_machine([name], Machine.core):
            if cores.machine == f"{single[name].machine}, 16 cores":
                ratios.append((cores.origin, cores.rate / single[name].rate))
    return ratios


PAPER = Paper(
    name="lu2012",
    title="Accelerating minor allele frequency computation (GAMA; Lu, Zhao, Luo, Wang 2012)",
    citation=LU,
    device="C2070",
    parameters=(
        Parameter("individuals", 1024, 1024, "individuals per site"),
        Parameter(
            "sites",
            32,
            128,
            "counted sites; counters per site are independent of their number, 2,674,654 in the paper",
        ),
    ),
    items=(
        Item("Algorithm 1", "The iterative-update SFS construction", algorithms.iterative),
        Item("Figure 1", "The super-band matrix of an individual", algorithms.matrix),
        Item("Figure 2", "Multiplication of two super-band matrices", algorithms.multiplication),
        Item("Figure 3", "The first column of a product", algorithms.first_column),
        Item("Algorithm 2", "The operator of the reduction, and its complexity", algorithms.reduction),
        Item("Figure 4", "The primitive binaryMerge", algorithms.binary_merge),
        Item("Figure 5", "Shared memory of one operator", algorithms.shared_memory),
        Item("Figure 6", "Write conflict without synchronization", algorithms.write_conflict),
        Item("Algorithm 3", "SFS normalization, and its underflow", algorithms.underflow),
        Item("Algorithms 4 and 5", "Normalization with logarithms", algorithms.logarithms),
        Item("Table 1", "The implementations", implementations),
        Item(
            "Figure 7",
            "Iterative update and reduction, without the nested-loop optimization",
            construction.algorithm_on_both,
        ),
        Item("Figure 8", "With and without the nested-loop optimization", construction.nested_loop),
        Item("Figure 9", "Instructions and divergent branches", construction.counters_of_skipping),
        Item("Figure 10", "Shared memory per warp: time and occupancy", construction.buffers),
        Item("Figure 11", "Warp order and explicit synchronization", construction.order),
        Item("Figure 12", "All constructions on CPU and GPU", construction.all_constructions),
        Item("Figure 13", "Extended precision and logarithms", precision),
        Item("Figure 14", "Components, and the whole", overall),
        Item("Headlines", "Claims of the abstract and of section 5.4", headlines),
    ),
    benchmarks=benchmarks,
)
