"""Cases that the workflow runs on the emulator and again on a GPU: every feature, every example, every variant."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from simtbed import Result
from simtbed.kernels import FAMILIES, FunctionLauncher
from simtbed.testing.conformance import FEATURES, Feature

from tests.validation.cases import EXAMPLES

Launch = Callable[..., Result]


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_feature(feature: Feature, launch: Launch) -> None:
    assert np.asarray(feature.expected).ravel().tolist() == feature.launch(launch).out.ravel().tolist()


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: str, launch: Launch) -> None:
    import_module(f"examples.kernels.{example}").check(launch)


@cache
def _expected(family: str) -> Any:
    return FAMILIES[family].oracle(FAMILIES[family].example())


@pytest.mark.slow
@pytest.mark.parametrize(("family", "variant"), [(f.name, v) for f in FAMILIES.values() for v in f.variants])
def test_variant(family: str, variant: str, launch: Launch) -> None:
    chosen = FAMILIES[family]
    answer = chosen.solve(chosen.example(), variant, FunctionLauncher(launch))
    assert chosen.compare(answer, _expected(family)).agrees
