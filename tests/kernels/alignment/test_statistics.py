"""Statistics of pairs: by hand, and the share of matches cited in the report of Ren 2019."""

from simtbed import launch
from simtbed.kernels import FunctionLauncher
from simtbed.kernels.alignment.host.pipeline import WORDS_AT_ONCE, align
from simtbed.kernels.alignment.host.problem import Problem
from simtbed.kernels.alignment.host.statistics import Statistics, rows, spread


def test_statistics_by_hand() -> None:
    problem = Problem.from_pairs([(b"ACGT", b"CG"), (b"ACGT", b"ACGT"), (b"CG", b"ACGT"), (b"ACGT", b"C")])
    statistics = Statistics()
    for pair in range(4):  # one pair at a time: the batch size does not change the statistics
        single = problem.subset(pair, pair + 1)
        statistics.add(single, align(single, "packed", FunctionLauncher(launch), WORDS_AT_ONCE))
    statistics.finish()
    assert (statistics.pairs, spread(statistics.references), spread(statistics.alternates)) == (4, (2, 4, 4), (1, 2, 4))
    assert statistics.bases == {"M": 2 + 4 + 2 + 1, "S": 2}
    assert statistics.runs == {"M": 4, "S": 2}
    assert statistics.batches == {2: 1, 1: 2}
    assert statistics.share("M") == 9 / 11
    assert statistics.accesses_saved == (9 - 4) / 9
    assert rows(statistics) == [
        ("pairs", "4"),
        ("bases of references: least, median, most", "2, 4, 4"),
        ("bases of alternates: least, median, most", "1, 2, 4"),
        ("M: bases, share, runs", "9, 81.82 %, 4"),
        ("S: bases, share, runs", "2, 18.18 %, 2"),
        ("pairs in a row with one reference: least, median, most", "1, 1, 2"),
        ("steps of a traceback that lengths of matches save", "55.56 %"),
    ]
    assert spread(Statistics().references) == (0, 0, 0)
