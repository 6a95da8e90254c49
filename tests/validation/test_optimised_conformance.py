"""The jit engine passes the conformance suite when LLVM optimises."""

import pytest
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.testing.conformance import Case, cases


@pytest.mark.parametrize("case", cases(LlvmEngine(optimise=True), emulates=True), ids=str)
def test_optimised_jit(case: Case) -> None:
    case.run()
