"""The jit engine passes the conformance suite when LLVM optimises."""

from __future__ import annotations

import pytest
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.testing.conformance import Case, cases


def _optimised_cases() -> list[Case]:
    """All cases but those of recorded data, and one case of recorded data for each feature."""
    whole = cases(LlvmEngine(optimise=True), emulates=True)
    recorded = [case for case in whole if case.name.startswith(("samples", "trace"))]
    features = len(recorded) // 2
    return [case for case in whole if case not in recorded] + [recorded[n % 2 * features + n] for n in range(features)]


@pytest.mark.parametrize("case", _optimised_cases(), ids=str)
def test_optimised_jit(case: Case) -> None:
    case.run()
