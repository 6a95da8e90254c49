"""The conformance suite: what an engine must do to run the kernels of simtbed, as cases that can be run one by one.

An engine is an object with a `name` and `run(request) -> Outcome` (`simtbed.runtime.engine.Engine`). The suite takes one, or
the name of a registered one, and gives cases; a case raises AssertionError with what differs. An engine of another
project is held to it by one test:

    import pytest
    from simtbed.testing.conformance import cases
    from my_engine import MyEngine

    @pytest.mark.parametrize("case", cases(MyEngine()), ids=str)
    def test_conformance(case):
        case.run()

`cases(engine)` holds an engine to the language: each feature kernel leaves its worked-out answer, each row of the op table
gives the table's results wherever CUDA defines them, arrays that stay with the engine are found by the next launch.
`cases(engine, emulates=True)` holds it to the emulators besides: the same counters, faults and printed lines as the
"numpy" engine, the table's results also where CUDA leaves them undefined, and the arithmetic check. Random kernels are
the third part; `simtbed.testing.strategies` says how they are used.
"""

from . import (  # noqa: F401  (their decorators fill FEATURES)
    features,
    features_arrays,
    features_atomics,
    features_complex,
    features_control,
    features_grids,
    features_halves,
    features_maths,
    features_memory,
    features_shared,
    features_values,
    features_warps,
)
from .feature import FEATURES, Feature
from .outcomes import assert_same
from .suite import Case, cases

__all__ = ["FEATURES", "Case", "Feature", "assert_same", "cases"]
