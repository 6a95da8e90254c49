"""What the emulator computes and prints is what each recorded GPU ran and answered; a stale record fails."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.kernels import FAMILIES
from simtbed.runtime.engine import Engine
from simtbed.testing.conformance import FEATURES, Feature
from simtbed.testing.conformance.operations import Group, group_id, groups

from tests.gpu.measure import ROUNDING, of_feature, of_ops, of_variant

RECORDS = sorted((Path(__file__).parent / "records").glob("*.json"))
LOADED: dict[str, dict[str, Any]] = {path.stem: json.loads(path.read_text()) for path in RECORDS}
AGAIN = "record it again on the GPU: python -m tests.gpu.record --data FOLDER"
recorded = pytest.mark.parametrize("device", LOADED)
emulated = pytest.mark.parametrize("engine", ["jit", "numpy"])


def test_there_is_a_record() -> None:
    assert "h200" in LOADED


def waits(device: str, name: str) -> None:
    """Kernels written since a GPU was last at hand stand in its record as waiting: seen here, and no agreement yet."""
    if name in LOADED[device]["waiting"]:
        pytest.xfail(f"{name} waits for its run on the GPU; {AGAIN}")


@recorded
@emulated
@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.name)
def test_feature(device: str, feature: Feature, engine: str) -> None:
    waits(device, feature.name)
    known = LOADED[device]["features"].get(feature.name)
    assert known is not None, f"{feature.name} is not in the record; {AGAIN}"
    found = of_feature(feature, engine).entry()
    assert found["sources"] == known["sources"], f"the printed kernel changed; {AGAIN}"
    assert found["output"] == known["output"], "the emulator's answer is not the GPU's"


@recorded
@pytest.mark.parametrize("engine", [LlvmEngine(), NumpyEngine()], ids=["jit", "numpy"])
@pytest.mark.parametrize("group", list(groups()), ids=group_id)
def test_ops(device: str, group: Group, engine: Engine) -> None:
    known = LOADED[device]["ops"].get(group_id(group))
    assert known is not None, f"{group_id(group)} is not in the record; {AGAIN}"
    found = of_ops(group, engine)
    assert found["sources"] == known["sources"], f"the printed kernel changed; {AGAIN}"
    for row in group[1]:
        if row.policy.name == "bits":
            assert found["rows"][row.name] == known["rows"][row.name], f"{row.name}: not the GPU's bits"
        else:
            assert known["rows"][row.name]["ulp"] <= row.policy.ulp, f"{row.name}: beyond its policy on the GPU"


CASES = [
    (device, family.name, variant, case.removeprefix(f"{family.name} {variant} "))
    for device, record in LOADED.items()
    for family in FAMILIES.values()
    for variant in family.variants
    for case in record.get("variants", {})
    if case.startswith(f"{family.name} {variant} ")
]

LARGE = ("pairhmm/10s.in", "alignment/sit2_10s.tsv")
"""Left to the jit engine: the numpy engine, to which it is held elsewhere, takes ten seconds for many a variant."""
RUNS = [(*case, engine) for case in CASES for engine in ("jit", "numpy") if engine == "jit" or case[3] not in LARGE]
VARIANTS = [f"{family.name} {variant}" for family in FAMILIES.values() for variant in family.variants]


@recorded
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_is_recorded(device: str, variant: str) -> None:
    waits(device, variant)
    assert any(case.startswith(f"{variant} ") for case in LOADED[device]["variants"]), f"{variant}: {AGAIN}"


@recorded
def test_nothing_waits_that_is_recorded_or_gone(device: str) -> None:
    record, names = LOADED[device], {*VARIANTS, *(feature.name for feature in FEATURES)}
    known = {*record["features"], *(" ".join(case.split(" ")[:2]) for case in record["variants"])}
    assert set(record["waiting"]) <= names - known


@pytest.mark.skipif("SIMTBED_DATA" not in os.environ, reason="SIMTBED_DATA names no folder with the data sets")
@pytest.mark.parametrize(("device", "family", "variant", "data", "engine"), RUNS)
def test_variant(device: str, family: str, variant: str, data: str, engine: str) -> None:
    known = LOADED[device]["variants"][f"{family} {variant} {data}"]
    found = of_variant(family, variant, Path(os.environ["SIMTBED_DATA"]) / data, engine).entry()
    assert found["sources"] == known["sources"], f"the printed kernels changed; {AGAIN}"
    assert found["output"] == known["output"], "the emulator's answer is not the GPU's"
    assert known.get("rounding", 0.0) <= ROUNDING
