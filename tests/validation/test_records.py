"""The emulator's printed kernels and results equal those of each recorded GPU; a stale record fails."""

import os
from functools import partial
from pathlib import Path

import pytest
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.kernels import FAMILIES
from simtbed.reports.hardware.answers import ROUNDING, answers_of, operation_answers
from simtbed.reports.hardware.cases import Case, OperationCase, solve_data_set
from simtbed.runtime.engine import Engine
from simtbed.runtime.registry import EngineName
from simtbed.testing.conformance import FEATURES, Feature

from tests.validation.cases import CASES, EXAMPLES, example_case, feature_case, operations
from tests.validation.recorded import load_record

LOADED = {"h200": load_record("h200"), "h100": load_record("h100")}
"""The records, in order; the second one has the shipped variants only. A variant is compared with the first record that has it."""
AGAIN = f"record it again on the GPU: simtbed record {' '.join(f'--cases {name}' for name in CASES)} --data FOLDER"
recorded = pytest.mark.parametrize("device", ["h200"])
emulated = pytest.mark.parametrize("engine", ["jit", "numpy"])


def test_there_is_a_record() -> None:
    assert "h200" in LOADED


def expect_waiting(device: str, name: str) -> None:
    """Expect a failure for a kernel that waits for its run on the GPU."""
    if name in LOADED[device].waiting:
        pytest.xfail(f"{name} waits for its run on the GPU; {AGAIN}")


def assert_recorded(device: str, case: Case, engine: EngineName) -> None:
    """Compare the printed kernels and the answers of a case with the record."""
    expect_waiting(device, case.name)
    expected = LOADED[device].answers.get(case.name)
    assert expected is not None, f"{case.name} is not in the record; {AGAIN}"
    entry = answers_of(case, engine).entry()
    assert entry["sources"] == expected["sources"], f"the printed kernel changed; {AGAIN}"
    assert entry["output"] == expected["output"], "the emulator's answer is not the GPU's"


@recorded
@emulated
@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.name)
def test_feature(device: str, feature: Feature, engine: EngineName) -> None:
    assert_recorded(device, feature_case(feature), engine)


@recorded
@pytest.mark.parametrize("example", EXAMPLES)
def test_example(device: str, example: str) -> None:
    assert_recorded(device, example_case(example), "jit")


@recorded
@pytest.mark.parametrize("engine", [LlvmEngine(), NumpyEngine()], ids=["jit", "numpy"])
@pytest.mark.parametrize("case", list(operations()), ids=lambda case: case.name)
def test_ops(device: str, case: OperationCase, engine: Engine) -> None:
    expect_waiting(device, case.name)
    expected = LOADED[device].operations.get(case.name)
    assert expected is not None, f"{case.name} is not in the record; {AGAIN}"
    actual = operation_answers(case, engine)
    assert actual["sources"] == expected["sources"], f"the printed kernel changed; {AGAIN}"
    for row in case.rows:
        if row.policy_for(case.type).name == "bits":
            assert actual["rows"][row.name] == expected["rows"][row.name], f"{row.name}: not the GPU's bits"
        else:
            assert expected["rows"][row.name]["ulp"] <= row.policy_for(case.type).ulp, (
                f"{row.name}: beyond its policy on the GPU"
            )


def first_record(variant: str) -> str:
    """Return the first device with a record of a variant, "FAMILY NAME"; "" if all wait for it."""
    return next(
        (device for device, one in LOADED.items() if any(case.startswith(f"{variant} ") for case in one.answers)), ""
    )


DATA_SETS = [
    (device, family.name, variant, case.removeprefix(f"{family.name} {variant} "))
    for family in FAMILIES.values()
    for variant in family.variants
    if (device := first_record(f"{family.name} {variant}"))
    for case in LOADED[device].answers
    if case.startswith(f"{family.name} {variant} ") and case.split(" ")[2] != "bloom"
]

LARGE = ("pairhmm/10s.in", "alignment/sit2_10s.tsv")
"""Only with the jit engine: the numpy engine needs ten seconds for many variants, and other tests compare it with the jit engine.
"""
RUNS = [(*case, engine) for case in DATA_SETS for engine in ("jit", "numpy") if engine == "jit" or case[3] not in LARGE]
SMALL = ("pairhmm/tiny.in", "alignment/edge.tsv", "alignment/ren64.tsv")
VARIANTS = [f"{family.name} {variant}" for family in FAMILIES.values() for variant in family.variants]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_is_recorded(variant: str) -> None:
    if all(variant in record.waiting for record in LOADED.values()):
        expect_waiting("h200", variant)
    assert first_record(variant), f"{variant}: {AGAIN}"


@pytest.mark.parametrize("device", LOADED)
def test_waiting_cases_exist_and_are_not_recorded(device: str) -> None:
    answers, names = LOADED[device].answers, {*VARIANTS, *(feature.name for feature in FEATURES)}
    names |= {*(example_case(example).name for example in EXAMPLES), *(case.name for case in operations())}
    recorded_names = {*answers, *(" ".join(case.split(" ")[:2]) for case in answers)}
    assert set(LOADED[device].waiting) <= names - recorded_names


@pytest.mark.skipif("SIMTBED_DATA" not in os.environ, reason="SIMTBED_DATA names no folder with the data sets")
@pytest.mark.parametrize(("device", "family", "variant", "data", "engine"), RUNS)
def test_variant(
    device: str, family: str, variant: str, data: str, engine: EngineName, request: pytest.FixtureRequest
) -> None:
    if data not in SMALL:
        request.getfixturevalue("optimised")
    name = f"{family} {variant} {data}"
    expected = LOADED[device].answers[name]
    run = partial(solve_data_set, family, variant, Path(os.environ["SIMTBED_DATA"]) / data)
    actual = answers_of(Case(name, run), engine).entry()
    assert actual["sources"] == expected["sources"], f"the printed kernels changed; {AGAIN}"
    assert actual["output"] == expected["output"], "the emulator's answer is not the GPU's"
    assert expected.get("rounding", 0.0) <= ROUNDING
