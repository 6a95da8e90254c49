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
from ..claims import (
    COMPUTED,
    PRINTED,
    Claim,
    Source,
    at_least,
    counted_by,
    exactly,
    less_than,
    more_than,
    near,
    same_results,
)
from ..paper import Chart, Column, Row, Series, Setting, Shown, Table, about, emulator, paper
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
GATK, TIED = "GATK's", "a mismatch as a gap of two"
PARAMETERS = {
    GATK: NEW,
    "mismatches dearer than gaps": Parameters(10, -9, -6, -1),
    TIED: Parameters(10, -8, -6, -2),
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
    alignments: dict[str, int] = {}
    pair = tuple(row.replace("-", "").encode() for row in PICTURED)
    for name, parameters in PARAMETERS.items():
        problem = Problem.from_pairs([(pair[0], pair[1])], parameters)
        ((cigar, offset, score),) = FAMILY.solve(problem, FAITHFUL, Runner(setting.engine)).tolist()
        alignments[name] = score
        rows.append({
            about("parameters"): f"{name}: {','.join(map(str, parameters))}", paper("CIGAR"): CIGAR, emulator("best CIGAR"): cigar,
            paper("POS"): POSITION, emulator("POS"): offset, emulator("score"): score,
            emulator("score of the figure's"): _score(parameters),
        })  # fmt: skip
    cigar, position = pictured()
    best = alignments[TIED]
    return Shown(
        [
            Claim(f"the CIGAR of the pictured alignment is {CIGAR}",
                  [exactly(PRINTED, "characters of the CIGAR of the rows of letters that differ", _differing(cigar, CIGAR), 0)],
                  main=True),
            Claim("its POS is 1, the place of the first aligned base of R1 from 0",
                  [exactly(PRINTED, "POS of the rows of letters", position, POSITION)], main=True),
            Claim("it is an optimal alignment", [
                exactly(COMPUTED, f"best score less the figure's, {TIED}", best - _score(PARAMETERS[TIED]), 0)],
                remark="It ties with others where a mismatch costs as much as the opening and one extension of a gap. With GATK's "
                f"parameters, the best alignment has a score of {alignments[GATK]:,}, the figure's {_score(PARAMETERS[GATK]):,}."),
        ],
        "CIGAR and POS are those of the pictured rows; the paper states no parameters.",
        [Table("R1 AGTCTAGCG, R2 GACGAACGT", rows)],
    )  # fmt: skip


def _differing(actual: str, expected: str) -> int:
    return abs(len(actual) - len(expected)) + sum(a != b for a, b in zip(actual, expected, strict=False))


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
        [Claim("M, I, D and S are the operations",
               [exactly(COMPUTED, f"letters missing or added, on {len(problem)} pairs", len(written ^ set(meanings)), 0)], main=True)],
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
            Claim("GATK's backtracking matrix needs no jump", [
                exactly(counted_by(K40), f"loads of one matrix for the {expected} operations of {cigar}", walked, expected)], main=True),
            Claim("a walk over scores jumps between the three matrices M, I and D", [],
                  remark="No variant stores the scores, and the figure's sequences are not printed."),
        ],
        "All variants avoid the three matrices of the figure; the matrix of moves is read once per operation.",
        [Table("One pair", [
            {about("variant"): variant, emulator("loads of the second stage"): count} for variant, count in loads.items()
        ])],
    )  # fmt: skip


def retrieval(setting: Setting) -> Shown:
    """Algorithm 1."""
    problem = generate(8, 40, (20, 60), (20, 60))
    agreement = FAMILY.compare(FAMILY.solve(problem, FAITHFUL, Runner(setting.engine)), FAMILY.oracle(problem))
    _, position = pictured()
    return Shown(
        [
            Claim("the optimal alignment is retrieved in one walk over the backtracking matrix",
                  [same_results(COMPUTED, agreement)], main=True, remark=f"The variant is `{FAITHFUL}`."),
            Claim("line 41: POS = i - 1 at the end of the loop",
                  [exactly(PRINTED, "i - 1 for the alignment of Figure 1", position - 1, POSITION)],
                  remark="With i from 1 to m, POS from 0 is i at the end of the loop, as in Figure 1 and in GATK."),
        ],
        "The walk is that of the second stage; POS is one too small as printed.",
        note=choices(FAMILY, FAITHFUL),
    )  # fmt: skip


def _number(row: Row, column: Column) -> float:
    return float(row[column] or 0)


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
            Claim("situations 2 and 3 take nearly all of the 34.5 % that alignments take of GATK", [
                near(PRINTED, "sum of the shares, %", 14.58 + 19.89, 34.5, 0.005)]),
            Claim("they take that share of GATK's time", [], main=True, remark="GATK is not included."),
            Claim("situation 3 takes longer with a sixteenth of the alignments", [
                near(PRINTED, "ratio of the numbers of alignments", 850376 / 54802, 16, 0.05)],
                remark="Its pairs have more cells, see Figure 3."),
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
            Claim("sequences have 40 to 350 bases in situation 2, 300 to 520 in situation 3", [], main=True,
                  remark="The alignments of GATK on G15512.HCC1954.1 are not published; generated regions have such lengths."),
            Claim("a pair of situation 3 has more cells",
                  [more_than(COMPUTED, "ratio of median cells in generated regions", cells["3"] / cells["2"], 1)]),
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
            Claim("M is by far the most frequent operation",
                  [at_least(COMPUTED, f"share of M, situation {situation}", group.share("M"), 0.9)
                   for situation, group in statistics.items()], main=True,
                  remark="Simulated regions."),
            Claim("99.65 % in situation 2", [
                near(COMPUTED, "M, %, of 196 published pairs by GATK's CIGARs", PUBLISHED_M_SHARE, M_SHARE, 0.0005)],
                  remark="The share depends on the data."),
            Claim("most operations M follow each other", [more_than(COMPUTED, "bases per run of M, situation 2", run, 10)]),
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
            Claim("batches have at most 293 pairs", [], main=True, remark="GATK forms the batches; it is not included."),
            Claim("so few pairs need a block each", [
                less_than(counted_by(K40), "blocks of 128 threads per SM, a thread per pair", blocks / K40.sms, 1)]),
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
    rule = counted_by(K40)
    return Shown(
        [
            Claim("m + n - 1 steps", [
                exactly(rule, f"steps, {row[about('R1')]} x {row[about('R2')]}",
                        _number(row, emulator("steps")), _number(row, paper("steps")))
                for row in rows], main=True),
            Claim("elements of the score matrices are not stored", [
                exactly(rule, f"words stored per cell, {row[about('R1')]} x {row[about('R2')]}",
                        _number(row, emulator("words stored per cell, scores excepted")), 1) for row in rows],
                remark="The word is the move."),
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
        [Claim("anti-diagonals one after the other avoid uncoalesced accesses", [
            less_than(counted_by(K40), "ratio of lines per store, diagonals to rows", lines["diagonal-major"] / lines["row-major"], 0.125)],
            main=True, remark=f"{lines['diagonal-major']:.2f} lines per store, against {lines['row-major']:.1f}.")],
        "By rows, each lane of a warp stores to a separate line; by anti-diagonals, the stores of a warp are contiguous.",
        [Table("Stores of moves, 256 x 256", rows)],
        note="Steps in which few lanes have a cell are among the stores, so that neither number is a full warp's.",
    )  # fmt: skip
