"""Examples and data analysis of Ren 2019: Figures 1 to 7, Table 1 and Algorithm 1."""

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
from ..claims import PRINTED, Number, Source, Value, counted_by
from ..definitions import printed
from ..paper import Chart, Figures, Row, Series, Setting, Table
from ..values import K40, solved
from .timing import WIDE as FAITHFUL
from .timing import counters, equal_sequences

KERNEL = "intratask_vectors"
"""The kernel of its first stage."""
BARRIERS = 2
"""Of a step of a warp."""


# ------------------------------------------------------------------ Figure 1 and Table 1
PICTURED = ("AGTCTAG--CG-", "-GAC--GAACGT")
CIGAR, POSITION = "3M2D1M2I2M1S", 1
GATK, TIED = "GATK's", "a mismatch as a gap of two"
PARAMETERS = {GATK: NEW, "mismatches dearer than gaps": Parameters(10, -9, -6, -1), TIED: Parameters(10, -8, -6, -2)}


def pictured() -> tuple[str, int]:
    """(CIGAR, POS) of the rows of letters and gaps in Fig. 1."""
    above, below = PICTURED
    letters = ["I" if a == "-" else "D" if b == "-" else "M" for a, b in zip(above, below, strict=True)]
    first = below.index(below.strip("-")[0])  # without leading gaps
    last = len(above.rstrip("-"))
    clipped = len(below[last:])
    runs = "".join(f"{len(list(group))}{letter}" for letter, group in groupby(letters[first:last]))
    return runs + (f"{clipped}S" if clipped else ""), first


def example(setting: Setting) -> Figures:
    """Fig. 1: two sequences and their alignment."""
    rows: list[Row] = []
    alignments: dict[str, int] = {}
    pair = tuple(row.replace("-", "").encode() for row in PICTURED)
    for name, parameters in PARAMETERS.items():
        problem = Problem.from_pairs([(pair[0], pair[1])], parameters)
        ((cigar, offset, score),) = FAMILY.solve(problem, FAITHFUL, Runner(setting.engine)).tolist()
        alignments[name] = score
        rows.append({
            "parameters": f"{name}: {','.join(map(str, parameters))}", "paper: CIGAR": CIGAR, "emulator: best CIGAR": cigar,
            "paper: POS": POSITION, "emulator: POS": offset, "emulator: score": score,
            "emulator: score of the figure's": _score(parameters),
        })  # fmt: skip
    cigar, position = pictured()
    return Figures(
        {
            "cigar": [Value(PRINTED, _differing(cigar, CIGAR))],
            "position": [Value(PRINTED, position)],
            "optimum": alignments[TIED] - _score(PARAMETERS[TIED]),
        },
        [Table("R1 AGTCTAGCG, R2 GACGAACGT", rows)],
        texts={"tied": TIED, "best": alignments[GATK], "pictured": _score(PARAMETERS[GATK])},
    )


def _differing(actual: str, expected: str) -> int:
    return abs(len(actual) - len(expected)) + sum(a != b for a, b in zip(actual, expected, strict=False))


def _score(parameters: Parameters) -> int:
    """Return the score of the alignment of Fig. 1: five matches, a mismatch, two gaps of two."""
    match, mismatch, opening, extending = parameters
    return 5 * match + mismatch + 2 * (opening + extending)


def operations(setting: Setting) -> Figures:
    """Table 1: the letters that CIGARs have."""
    problem = generate(6, 60, (20, 60), (20, 60))
    meanings: dict[str, str] = printed("ren2019")["operations"]
    rows: list[Row] = []
    written: set[str] = set()
    used: dict[Strategy, set[str]] = {}
    for strategy in Strategy:
        cigars = FAMILY.solve(replace(problem, strategy=strategy), FAITHFUL, Runner(setting.engine))["cigar"].tolist()
        used[strategy] = {letter for cigar in cigars for letter in cigar if letter.isalpha()}
        written |= used[strategy]
    for letter, meaning in meanings.items():
        strategies = ", ".join(strategy.name for strategy in Strategy if letter in used[strategy])
        rows.append({"operation": letter, "paper: description": meaning, "emulator: used by": strategies})
    return Figures(
        {"letters": {f"on {len(problem)} pairs": len(written ^ set(meanings))}}, [Table("Operations of CIGARs", rows)]
    )


# ------------------------------------------------------------------ Figure 2
WALKED = (b"AACCGGTTACGTAATC", b"AACCGTTACCGTAATC")
"""An alignment with a deletion and an insertion."""


def backtracking(setting: Setting) -> Figures:
    """Figure 2: traceback over three score matrices or one matrix of moves."""
    problem = Problem.from_pairs([WALKED], Parameters(10, -15, -5, -2), Strategy.INDEL)
    ((cigar, _, _),) = FAMILY.solve(problem, FAITHFUL, Runner(setting.engine)).tolist()
    counted = {name: counters(problem, name, "traceback", setting.engine) for name in (FAITHFUL, "pairalign")}
    rows: list[Row] = [
        {"variant": name, "emulator: loads of the second stage": each.total("global_load_requests")}
        for name, each in counted.items()
    ]
    walked = counted[FAITHFUL].at("moves[place.x").total("global_load_requests")
    loads = walked / sum(letter.isalpha() for letter in cigar)
    return Figures({"loads": loads}, [Table("One pair", rows)], texts={"cigar": cigar}, rule=counted_by(K40))


def retrieval(setting: Setting) -> Figures:
    """Algorithm 1."""
    results = solved(FAMILY, generate(8, 40, (20, 60), (20, 60)), FAITHFUL, setting.engine)
    return Figures(
        {"results": results, "position": [Value(PRINTED, pictured()[1] - 1)]},
        texts={"variant": FAITHFUL, "choices": choices(FAMILY, FAITHFUL)},
    )


# ------------------------------------------------------------------ Figures 3 and 4
PUBLISHED_M_SHARE = 99.86
"""Per cent of M of the 196 published pairs of `sit2_10s`, by GATK's own CIGARs with NEW."""


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


def _statistics(setting: Setting) -> dict[str, Statistics]:
    """Return the statistics of simulated regions, and of the user's pairs."""
    statistics = dict(simulated_statistics(setting.whole("regions")))
    if setting.data:
        problem, own = FAMILY.read(setting.data), Statistics()
        own.add(problem, align(problem, "packed", Runner("jit"), WORDS_AT_ONCE))
        own.finish()
        statistics[setting.data.name] = own
    return statistics


def lengths(setting: Setting) -> Figures:
    """Figure 3."""
    rows: list[Row] = []
    cells = {}
    for situation, statistics in _statistics(setting).items():
        (least, middle, most), (short, median, long) = spread(statistics.references), spread(statistics.alternates)
        cells[situation] = middle * median
        rows.append({
            "situation": situation, "emulator: pairs": statistics.pairs,
            "emulator: R1: least, median, most": f"{least}, {middle}, {most}",
            "emulator: R2: least, median, most": f"{short}, {median}, {long}",
        })  # fmt: skip
    return Figures({"cells": cells["3"] / cells["2"]}, [Table("Lengths", rows)])


def share_of_matches(setting: Setting) -> Figures:
    """Figure 4."""
    statistics = _statistics(setting)
    rows: list[Row] = [
        {
            "situation": situation,
            **{f"emulator: {letter}, %": 100 * group.share(letter) for letter in "MIDS"},
            "emulator: bases a run of M": group.bases["M"] / max(group.runs["M"], 1),
            "emulator: loads saved by lengths of M, %": 100 * group.accesses_saved,
        }
        for situation, group in statistics.items()
    ]
    bars = [
        Series(f"situation {situation}", Source.emulator, [(letter, float(group.bases[letter])) for letter in "MIDS"])
        for situation, group in statistics.items()
    ]
    return Figures(
        {
            "matches": {f"situation {name}": group.share("M") for name, group in statistics.items()},
            "published": PUBLISHED_M_SHARE,
            "run": statistics["2"].bases["M"] / max(statistics["2"].runs["M"], 1),
        },
        [Table("Operations", rows)],
        [Chart("Numbers of M, I, D and S", "operation", "bases", bars, bars=True, logarithmic=True)],
    )


# ------------------------------------------------------------------ Figures 6 and 7
def anti_diagonals(setting: Setting) -> Figures:
    """Figure 6: a thread a column, a step an anti-diagonal."""
    values: dict[str, dict[str, Number]] = {"steps": {}, "words": {}}
    rows: list[Row] = []
    for n, m in ((6, 6), (64, 64), (256, 128), (576, 576)):
        totals = counters(equal_sequences(m, 1, n), FAITHFUL, KERNEL, setting.engine).totals()
        steps = totals["barriers"] // (BARRIERS * -(-m // 32))
        words = (totals["global_store_bytes"] - 16) / (4 * n * m)
        values["steps"][f"{n} x {m}"], values["words"][f"{n} x {m}"] = steps, words
        rows.append({
            "R1": n, "R2": m, "emulator: steps": steps, "emulator: words stored per cell, scores excepted": words,
        })  # fmt: skip
    return Figures(
        values, [Table("One pair", rows)], texts={"choices": choices(FAMILY, FAITHFUL)}, rule=counted_by(K40)
    )


def layouts(setting: Setting) -> Figures:
    """Figure 7: the backtracking matrix by rows and by anti-diagonals."""
    problem = equal_sequences(256, 2)
    rows: list[Row] = []
    lines = {}
    for layout in ("row-major", "diagonal-major"):
        moves = counters(problem, f"wide-{layout}-runs", KERNEL, setting.engine).at("moves[place.x").totals()
        lines[layout] = moves["global_store_lines"] / moves["global_store_requests"]
        rows.append({
            "layout": layout, "emulator: lines of 128 bytes a store": lines[layout],
            "emulator: sectors a store": moves["global_store_sectors"] / moves["global_store_requests"],
        })  # fmt: skip
    diagonals, by_row = lines["diagonal-major"], lines["row-major"]
    texts = {"diagonals": diagonals, "rows": by_row}
    return Figures(
        {"lines": diagonals / by_row}, [Table("Stores of moves, 256 x 256", rows)], texts=texts, rule=counted_by(K40)
    )
