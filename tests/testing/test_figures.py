"""Changes of metrics as texts, and whether they are an improvement."""

from simtbed.testing.figures import Change, improvement

from tests.table_checks import each_row

TEXTS = [
    (Change("sectors", 16, 32), "sectors: 16 in the baseline, now 32 (+100 %)"),
    (Change("sectors", 1200, 1000), "sectors: 1,200 in the baseline, now 1,000 (-17 %)"),
    (Change("sectors", 100_000, 99_958), "sectors: 100,000 in the baseline, now 99,958 (-0.042 %)"),
    (Change("conflicts", 0, 992), "conflicts: 0 in the baseline, now 992"),
    (Change("efficiency", 0.82314159, 1.0), "efficiency: 0.8231 in the baseline, now 1 (+21 %)"),
]
IMPROVEMENTS = [
    ([Change("a", 1200, 1000), Change("b", 10, 9), Change("efficiency", 1.0, 0.9)], "improved by 17 % (a)"),
    ([Change("a", 1200, 1000), Change("b", 9, 10)], ""),
    ([Change("a", 0, 1)], ""),
    ([Change("efficiency", 0.5, 1.0)], ""),
    ([Change("a", 3, 0)], "improved by 100 % (a)"),
]


@each_row(TEXTS)
def test_a_change_is_signed_and_rounded(case: tuple[Change, str]) -> None:
    assert str(case[0]) == case[1]


@each_row(IMPROVEMENTS)
def test_an_improvement_has_no_larger_count(case: tuple[list[Change], str]) -> None:
    assert improvement(case[0]) == case[1]
