"""Solutions of the linear program, and a silent solver."""

from __future__ import annotations

import pytest
from simtbed import LaunchError
from simtbed.compiled.linear_program import LinearProgram


def test_the_cheapest_variables_fulfil_the_equations() -> None:
    program = LinearProgram()
    cheap, dear = program.variable(1.0), program.variable(2.0, upper_bound=3.0)
    program.equal({cheap: 1.0, dear: 1.0}, 5.0)
    program.soft_equal({dear: 1.0}, 2.0, cost_short=4.0, cost_excess=4.0)
    program.at_most({cheap: 1.0}, 4.0)
    assert program.solve()[[cheap, dear]] == pytest.approx([3.0, 2.0])


def test_an_infeasible_program_is_reported() -> None:
    program = LinearProgram()
    program.equal({program.variable(1.0, upper_bound=1.0): 1.0}, 5.0)
    with pytest.raises(LaunchError, match="has no solution: Infeasible"):
        program.solve()


def test_the_solver_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Its output would mix with a command's."""
    program = LinearProgram()
    program.equal({program.variable(1.0): 1.0}, 5.0)
    assert program.solve().tolist() == [5.0]
    assert capfd.readouterr() == ("", "")
