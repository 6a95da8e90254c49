"""Examples and data analysis of Ren 2019: Figures 1 to 7, Tables 1 and 2."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import groupby

from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host.generate import generate
from simtbed.kernels.alignment.host.pipeline import WORDS_AT_ONCE, align
from simtbed.kernels.alignment.host.problem import NEW, Parameters, Problem, Strategy
from simtbed.kernels.alignment.host.statistics import Statistics, spread
from simtbed.kernels.pairhmm.host.generate import generate as generate_region

from ...explanation import choices
from ...launchers import Runner
from ..paper import Chart, Claim, Row, Series, Setting, Shown, Source, Table, about, emulator, paper
from .counted import K40, counters, equal_sequences

FAITHFUL = "wide-diagonal-major-runs"
"""The implementation compared with the CPU in the paper."""
KERNEL = "intratask_vectors"
"""The kernel of its first stage."""
BARRIERS = 2
"""Of a step of a warp."""


# ------------------------------------------------------------------ Figure 1 and Table 1
PICTURED = ("AGTCTAG--CG-", "-GAC--GAACGT")
CIGAR, POSITION = "3M2D1M2I2M1S", 1
PARAMETERS = {
    "GATK's": NEW,
    "mismatches dearer than gaps": Parameters(10, -9, -6, -1),
    "cheap gaps": Parameters(10, -8, -3, -1),
}


def pictured() -> tuple[str, int]:
    """(CIGAR, POS) of the rows of letters and gaps in Fig. 1."""
    above, below = PICTURED
    letters = ["I" if a == "-" else "D" if b == "-" else "M" for a, b in zip(above, below, strict=True)]
    first = below.index(below.strip("-")[0])  # without leading gaps
    last = len(above.rstrip("-"))
    clipped = len(below[last:])
    runs = "".join(f"{len(list(group))}{letter}" for letter, group in groupby(letters[first:last]))
    return runs + (f"{clipped}S" if clipped else ""), first


def example(setting: Setting) -> Shown:
    """Fig. 1: two sequences and their alignment."""
    rows: list[Row] = []
    alignments = {}
    pair = tuple(row.replace("-", "").encode() for row in PICTURED)
    for name, parameters in PARAMETERS.items():
        problem = Problem.from_pairs([(pair[0], pair[1])], parameters)
        ((cigar, offset, score),) = FAMILY.solve(problem, FAITHFUL, Runner(setting.engine)).tolist()
        alignments[name] = cigar
        rows.append({
            about("parameters"): f"{name}: {','.join(map(str, parameters))}", paper("CIGAR"): CIGAR, emulator("best CIGAR"): cigar,
            paper("POS"): POSITION, emulator("POS"): offset, emulator("score"): score,
            emulator("score of the figure's"): _score(parameters),
        })  # fmt: skip
    cigar, position = pictured()
    return Shown(
        [
            Claim(f"the CIGAR of the pictured alignment is {CIGAR}", cigar == CIGAR, cigar),
            Claim("its POS is 1, the place of the first aligned base of R1 from 0", position == POSITION,
                  f"{position}; Algorithm 1's POS = i - 1 would say {position - 1}"),
            Claim("it is the optimal alignment", CIGAR in alignments.values(),
                  "no parameters make it the best one: for its gaps two mismatches must cost more than they do, and then its "
                  "mismatch costs more than a longer gap"),
        ],
        "The CIGAR of the figure is correct, but its alignment is not optimal: its gaps or its mismatch always cost too much.",
        [Table("R1 AGTCTAGCG, R2 GACGAACGT", rows)],
    )  # fmt: skip


def _score(parameters: Parameters) -> int:
    """Return the score of the alignment of Fig. 1: five matches, a mismatch, two gaps of two."""
    match, mismatch, opening, extending = parameters
    return 5 * match + mismatch + 2 * (opening + extending)


def operations(setting: Setting) -> Shown:
    """Table 1: the written of a CIGAR."""
    problem = generate(6, 60, (20, 60), (20, 60))
    meanings = {
        "M": "match or mismatch",
        "I": "insertion, gap in R1",
        "D": "deletion, gap in R2",
        "S": "base at an end of R2 alone",
    }
    rows: list[Row] = []
    written: set[str] = set()
    used: dict[Strategy, set[str]] = {}
    for strategy in Strategy:
        cigars = FAMILY.solve(replace(problem, strategy=strategy), FAITHFUL, Runner(setting.engine))["cigar"].tolist()
        used[strategy] = {letter for cigar in cigars for letter in cigar if letter.isalpha()}
        written |= used[strategy]
    for letter, meaning in meanings.items():
        strategies = ", ".join(strategy.name for strategy in Strategy if letter in used[strategy])
        rows.append({about("operation"): letter, paper("description"): meaning, emulator("used by"): strategies})
    return Shown(
        [Claim("M, I, D and S are the operations", written == set(meanings), f"{', '.join(sorted(written))} on {len(problem)} pairs")],
        "No other letter is written, and S only where the strategy clips.",
        [Table("Operations of CIGARs", rows)],
    )  # fmt: skip


# ------------------------------------------------------------------ Figure 2
WALKED = (b"AACCGGTTACGTAATC", b"AACCGTTACCGTAATC")
"""An alignment with a deletion and an insertion."""


def backtracking(setting: Setting) -> Shown:
    """Figure 2: traceback over three score matrices or one matrix of moves."""
    problem = Problem.from_pairs([WALKED], Parameters(10, -15, -5, -2), Strategy.INDEL)
    ((cigar, _, _),) = FAMILY.solve(problem, FAITHFUL, Runner(setting.engine)).tolist()
    loads: dict[str, int] = {}
    for variant in (FAITHFUL, "pairalign"):
        loads[variant] = counters(problem, variant, "traceback", setting.engine).totals()["global_load_requests"]
    expected = sum(letter.isalpha() for letter in cigar)
    walked = (
        counters(problem, FAITHFUL, "traceback", setting.engine).at("moves[place.x").totals()["global_load_requests"]
    )
    return Shown(
        [
            Claim("a walk over scores jumps between the three matrices M, I and D", None,
                  "no variant stores the scores, and the figure's sequences are not printed"),
            Claim("GATK's backtracking matrix needs no jump", walked == expected,
                  f"{walked} loads of one matrix for the {expected} operations of {cigar}"),
        ],
        "All variants avoid the three matrices of the figure; the matrix of moves is read once per operation.",
        [Table("One pair", [
            {about("variant"): variant, emulator("loads of the second stage"): count} for variant, count in loads.items()
        ])],
    )  # fmt: skip


# ------------------------------------------------------------------ Table 2 and Figures 3 to 5
SITUATIONS = (("1", 3529, 0.03), ("2", 850376, 14.58), ("3", 54802, 19.89))
"""Table 2: number of alignments, share of GATK's time in per cent."""
SHORTEST, LONGEST = {"2": 40, "3": 300}, {"2": 350, "3": 520}
"""Fig. 3: bases of the sequences of a situation."""
LARGEST_BATCH = {"2": 293, "3": 192}
MOST = {"2": (25, 125), "3": (1, 8)}
"""Fig. 5: pairs of the largest batch, and of most."""
M_SHARE = 99.65
PUBLISHED_M_SHARE = 99.86
"""Per cent of M in situation 2; and of the 196 published pairs of `sit2_10s`, by GATK's own CIGARs with NEW."""


def execution_time(setting: Setting) -> Shown:
    """Table 2."""
    rows: list[Row] = [
        {about("situation"): name, paper("alignments"): number, paper("share of the time, %"): share}
        for name, number, share in SITUATIONS
    ]
    return Shown(
        [
            Claim("situations 2 and 3 take nearly all of the 34.5 % that alignments take of GATK", None, "GATK is not included"),
            Claim("situation 3 takes longer with a sixteenth of the alignments", None, "its pairs have more cells, see Fig. 3"),
        ],
        "GATK HaplotypeCaller and its data are not included.",
        [Table("Chromosome 10 of G15512.HCC1954.1, one thread", rows)],
    )  # fmt: skip


@cache
def simulated_statistics(regions: int) -> dict[str, Statistics]:
    """Return statistics of simulated regions: reads with their best haplotype (2), haplotypes with the reference (3)."""
    region = generate_region(
        19, records=regions, reads=(25, 125), haplotypes=(2, 6), read_length=(40, 120), haplotype_length=(300, 350)
    )
    statistics = {"2": Statistics(), "3": Statistics()}
    pairs: dict[str, list[tuple[bytes, bytes]]] = {"2": [], "3": []}
    for reads, haplotypes in region.records():
        letters = [haplotype.tobytes() for haplotype in haplotypes]
        paired = Problem.from_pairs((haplotype, read[0].tobytes()) for read in reads for haplotype in letters)
        scores = FAMILY.solve(paired, "packed", Runner("jit"))["score"].reshape(len(reads), len(letters))
        best = scores.argmax(axis=1).tolist()
        pairs["2"] += [(letters[chosen], read[0].tobytes()) for read, chosen in zip(reads, best, strict=True)]
        pairs["3"] += [(letters[0], haplotype) for haplotype in letters]
    for situation, chosen in pairs.items():
        problem = Problem.from_pairs(chosen)
        statistics[situation].add(problem, align(problem, "packed", Runner("jit"), WORDS_AT_ONCE))
        statistics[situation].finish()
    return statistics


def lengths(setting: Setting) -> Shown:
    """Fig. 3."""
    rows: list[Row] = []
    cells = {}
    for situation, statistics in simulated_statistics(setting.whole("regions")).items():
        (least, middle, most), (short, median, long) = spread(statistics.references), spread(statistics.alternates)
        cells[situation] = middle * median
        rows.append({
            about("situation"): situation, paper("shortest"): SHORTEST[situation], paper("longest"): LONGEST[situation],
            emulator("pairs"): statistics.pairs, emulator("R1: least, median, most"): f"{least}, {middle}, {most}",
            emulator("R2: least, median, most"): f"{short}, {median}, {long}",
        })  # fmt: skip
    return Shown(
        [
            Claim("sequences have 40 to 350 bases in situation 2, 300 to 520 in situation 3", None,
                  "the reads are not public; the generated regions have such lengths"),
            Claim("a pair of situation 3 has more cells", cells["3"] > cells["2"],
                  f"{cells['3'] / cells['2']:.1f} times as many in generated regions, by the medians"),
        ],
        "`simtbed align --statistics` prints these statistics for any input; the paper's input is not public.",
        [Table("Lengths", rows)],
    )  # fmt: skip


def share_of_matches(setting: Setting) -> Shown:
    """Fig. 4."""
    rows: list[Row] = []
    statistics = simulated_statistics(setting.whole("regions"))
    for situation, group in statistics.items():
        rows.append({
            about("situation"): situation, paper("M, %"): M_SHARE if situation == "2" else None,
            **{emulator(f"{letter}, %"): 100 * group.share(letter) for letter in "MIDS"},
            emulator("bases a run of M"): group.bases["M"] / max(group.runs["M"], 1),
            emulator("loads saved by lengths of M, %"): 100 * group.accesses_saved,
        })  # fmt: skip
    bars = [
        Series(f"situation {situation}", Source.emulator, [(letter, float(group.bases[letter])) for letter in "MIDS"])
        for situation, group in statistics.items()
    ]
    run = statistics["2"].bases["M"] / max(statistics["2"].runs["M"], 1)
    return Shown(
        [
            Claim("M is by far the most frequent operation", all(group.share("M") > 0.9 for group in statistics.values()),
                  f"{100 * statistics['2'].share('M'):.2f} % and {100 * statistics['3'].share('M'):.2f} % in simulated situations 2, 3"),
            Claim("99.65 % in situation 2", None, f"a matter of the data: {PUBLISHED_M_SHARE} % of 196 published pairs by GATK's CIGARs"),
            Claim("most operations M follow each other", run > 10, f"a run of M has {run:.0f} bases in situation 2"),
        ],
        "Most steps of a traceback are in runs of M; recording their lengths saves these steps.",
        [Table("Operations", rows)],
        [Chart("Numbers of M, I, D and S", "operation", "bases", bars, bars=True, logarithmic=True)],
    )  # fmt: skip


def batches(setting: Setting) -> Shown:
    """Fig. 5."""
    rows: list[Row] = []
    for situation in ("2", "3"):
        least, most = MOST[situation]
        rows.append({
            about("situation"): situation, paper("pairs of most batches"): f"{least} to {most}",
            paper("pairs of the largest batch"): LARGEST_BATCH[situation],
        })  # fmt: skip
    blocks = -(-LARGEST_BATCH["2"] // 128)
    return Shown(
        [
            Claim("batches have at most 293 pairs", None, "GATK forms the batches; it is not included"),
            Claim("so few pairs need a block each", blocks < K40.sms,
                  f"{LARGEST_BATCH['2']} pairs are {blocks} blocks of 128 threads if a thread computes one, for {K40.sms} SMs"),
        ],
        "The batch sizes are those of GATK; the conclusions of the paper follow from the rules of the GPU.",
        [Table("Batches", rows)],
    )  # fmt: skip


# ------------------------------------------------------------------ Figures 6 and 7
def anti_diagonals(setting: Setting) -> Shown:
    """Fig. 6: a thread a column, a step an anti-diagonal."""
    rows: list[Row] = []
    for n, m in ((6, 6), (64, 64), (256, 128), (576, 576)):
        totals = counters(equal_sequences(m, 1, n), FAITHFUL, KERNEL, setting.engine).totals()
        warps = -(-m // 32)
        rows.append({
            about("R1"): n, about("R2"): m, paper("steps"): n + m - 1, emulator("steps"): totals["barriers"] // (BARRIERS * warps),
            emulator("words stored per cell, scores excepted"): (totals["global_store_bytes"] - 16) / (4 * n * m),
        })  # fmt: skip
    same = [row[paper("steps")] == row[emulator("steps")] for row in rows]
    once = [row[emulator("words stored per cell, scores excepted")] == 1 for row in rows]
    return Shown(
        [
            Claim("m + n - 1 steps", all(same), f"equal for {sum(same)} of {len(same)} sizes"),
            Claim("elements of the score matrices are not stored", all(once), "a cell stores its move, one word, and nothing else"),
        ],
        "Barriers, two per step, and stores are counted; scores use only shared memory and registers.",
        [Table("One pair", rows)],
        note=choices(FAMILY, FAITHFUL),
    )  # fmt: skip


def layouts(setting: Setting) -> Shown:
    """Fig. 7: the backtracking matrix by rows and by anti-diagonals."""
    problem = equal_sequences(256, 2)
    rows: list[Row] = []
    lines = {}
    for layout in ("row-major", "diagonal-major"):
        moves = counters(problem, f"wide-{layout}-runs", KERNEL, setting.engine).at("moves[place.x").totals()
        lines[layout] = moves["global_store_lines"] / moves["global_store_requests"]
        rows.append({
            about("layout"): layout, paper("accesses of a warp"): 32 if layout == "row-major" else 1,
            emulator("lines of 128 bytes a store"): lines[layout],
            emulator("sectors a store"): moves["global_store_sectors"] / moves["global_store_requests"],
        })  # fmt: skip
    return Shown(
        [Claim("anti-diagonals one after the other avoid uncoalesced accesses", lines["diagonal-major"] < lines["row-major"] / 8,
               f"{lines['diagonal-major']:.2f} lines a store against {lines['row-major']:.1f}")],
        "By rows, each lane of a warp stores to a separate line; by anti-diagonals, the stores of a warp are contiguous.",
        [Table("Stores of moves, 256 x 256", rows)],
        note="Steps in which few lanes have a cell are among the stores, so that neither number is a full warp's.",
    )  # fmt: skip
