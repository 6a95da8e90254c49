"""On a machine with a GPU: it gives the emulator's bits."""

from __future__ import annotations

import pytest
from simtbed.emulator import LaunchError, launch
from simtbed.emulator.engines.cuda_run import CudaEngine, describe
from simtbed.emulator.engines.numpy_engine import NumpyEngine
from simtbed.kernels import FAMILIES

from tests.gpu.measure import ROUNDING, Recorder, of_feature, of_ops
from tests.language.all_features import FEATURES, Feature
from tests.language.kept import sequence
from tests.ops.programs import Group, group_id, groups


def obstacle() -> str:
    """Why this machine cannot run the cuda engine; empty if it can."""
    try:
        describe()
    except LaunchError as error:
        return str(error)
    return ""


pytestmark = pytest.mark.skipif(bool(obstacle()), reason=obstacle() or "a GPU is there")


@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.name)
def test_feature(feature: Feature) -> None:
    assert of_feature(feature, "cuda").entry() == of_feature(feature, "numpy").entry()


@pytest.mark.parametrize("group", list(groups()), ids=group_id)
def test_ops(group: Group) -> None:
    gpu, emulated = of_ops(group, CudaEngine())["rows"], of_ops(group, NumpyEngine())["rows"]
    for row in group[1]:
        if row.policy.name == "bits":
            assert gpu[row.name] == emulated[row.name], row.name
        else:
            assert gpu[row.name]["ulp"] <= row.policy.ulp, row.name


@pytest.mark.parametrize(("family", "variant"), [(f.name, v) for f in FAMILIES.values() for v in f.variants])
def test_variant(family: str, variant: str) -> None:
    chosen = FAMILIES[family]
    recorders = [Recorder(engine) for engine in ("cuda", "numpy")]
    for recorder in recorders:
        chosen.solve(chosen.example(), variant, recorder)
    assert recorders[0].entry() == recorders[1].entry()
    assert recorders[0].rounding(recorders[1]) <= ROUNDING


def test_repeated_timing() -> None:
    request = launch(FEATURES[0].kernel, grid=3, block=40, args=FEATURES[0].args).request
    assert len(CudaEngine().time(request, 3)) == 3


def test_arrays_that_stay() -> None:
    between, pairs, found = sequence("cuda")
    assert found == sequence("numpy")[2]
    assert between.remote and pairs.remote
