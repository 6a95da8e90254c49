"""Recorded answers of the validation kernels: both GPUs, and the emulator."""

from collections import Counter

import pytest
from simtbed.reports.hardware.answers import ROUNDING, answers_of
from simtbed.reports.hardware.cases import Case, find

from tests.validation.recorded import KERNEL_CASES, load_record

RECORDED = {name: load_record(f"kernels/{name.lower()}") for name in ("H200", "H100")}


def test_each_kernel_is_in_a_record() -> None:
    names = {case.name for case in find([KERNEL_CASES])}
    assert RECORDED["H200"].answers.keys() | RECORDED["H100"].answers.keys() == names


def test_both_gpus_have_equal_counters() -> None:
    """A few kernels have one or two different metrics: they depend on the order of the lanes."""
    h100, h200 = (RECORDED[name].counters for name in ("H100", "H200"))
    pairs = [(name, a, b) for name in h100.keys() & h200.keys() for a, b in zip(h100[name], h200[name], strict=True)]
    unlike = Counter(name for name, a, b in pairs for figure, n in a.figures.items() if n != b.figures[figure])
    assert len(pairs) == 87 and sum(unlike.values()) <= 31 and unlike.most_common(1)[0][0] == "validation slab_photons"


@pytest.mark.parametrize("case", find([KERNEL_CASES]), ids=lambda case: case.name)
def test_recorded_answer(case: Case) -> None:
    record = next(record for record in RECORDED.values() if case.name in record.answers)
    assert answers_of(case, "jit").entry() == record.answers[case.name]
    assert record.answers[case.name].get("rounding", 0.0) <= ROUNDING
