"""The conformance suite: requirements on an engine that runs the kernels of simtbed, as separate cases.

An engine is an object with a `name` and `run(request) -> Outcome` (`simtbed.runtime.engine.Engine`). `cases` accepts an engine,
or the name of a registered one, and returns cases; a case raises AssertionError with the difference. A project tests its engine
with one test:

    import pytest
    from simtbed.testing.conformance import cases
    from my_engine import MyEngine

    @pytest.mark.parametrize("case", cases(MyEngine()), ids=str)
    def test_conformance(case):
        case.run()

`cases(engine)` tests the language: each feature kernel writes its expected output, each row of the op table
gives the table's results if CUDA defines them, and device arrays persist between launches.
`cases(engine, emulates=True)` compares the engine with the emulators too: the same counters, faults and printed lines as the
"numpy" engine, the table's results for operands undefined in CUDA, and the arithmetic check. Random kernels are
the third kind of test: see `simtbed.testing.strategies`.
"""

from . import (  # noqa: F401  (their decorators fill FEATURES)
    features,
    features_arrays,
    features_atomics,
    features_clusters,
    features_complex,
    features_control,
    features_copies,
    features_grids,
    features_halves,
    features_maths,
    features_matrices,
    features_memory,
    features_shared,
    features_values,
    features_warps,
)
from .feature import FEATURES, Feature
from .outcomes import assert_same
from .suite import Case, cases

__all__ = ["FEATURES", "Case", "Feature", "assert_same", "cases"]
