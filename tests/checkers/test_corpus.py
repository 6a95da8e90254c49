"""Every mistake of the corpus is reported with its exact kind, its fixed twin has no report; both engines agree."""

import pytest
from simtbed import devices
from simtbed.runtime.registry import EngineName

from tests.checkers.corpus import PAIRS

ENGINES: tuple[EngineName, ...] = ("numpy", "jit")


@pytest.mark.parametrize("name", PAIRS)
def test_the_mistake_is_found(name: str) -> None:
    results = {engine: PAIRS[name].launch(False, engine) for engine in ENGINES}
    assert {fault.kind for fault in results["jit"].faults} == {PAIRS[name].fault}, "\n".join(
        map(str, results["jit"].faults)
    )
    assert results["numpy"].faults == results["jit"].faults
    assert results["numpy"].remarks == results["jit"].remarks


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_the_fixed_twin_is_silent(name: str) -> None:
    for engine in ENGINES:
        result = PAIRS[name].launch(True, engine)
        assert result.faults == [], "\n".join(map(str, result.faults))
        assert result.remarks == []


def test_every_class_has_its_pairs() -> None:
    assert len(PAIRS) >= 60
    kinds = {"bounds", "uninitialised", "race", "unacquired race", "barrier", "convergence", "arithmetic"}
    kinds |= {"step limit", "schedule", "mbarrier", "wgmma"}
    assert {pair.fault for pair in PAIRS.values()} == kinds


@pytest.mark.parametrize("device", ["C2070", "K20m", "K40"])
@pytest.mark.parametrize("name", ["gama_merge", "cuda_ec_vote"])
def test_lockstep_algorithms_have_no_race_on_lockstep_devices(name: str, device: str) -> None:
    """The naive ports race on compute capability 9.0 (test_the_mistake_is_found) and do not on 2.0 and 3.5."""
    from dataclasses import replace

    for engine in ENGINES:
        assert replace(PAIRS[name], device=devices.DEVICES[device]).launch(False, engine).faults == []
