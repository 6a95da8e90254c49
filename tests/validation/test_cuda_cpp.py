"""Round trips of all validation kernels, examples and features through CUDA C++, and of the checkers' corpus."""

from importlib import import_module

import simtbed as st
from simtbed.testing.conformance import FEATURES

from tests.checkers.corpus import PAIRS
from tests.cuda_cpp.round_trip import RoundTrips, arguments, read_back
from tests.validation.cases import EXAMPLES
from tests.validation.kernels import KERNELS

ROWS = {
    "wrong_row_of_a_tile", "column_of_the_row_before", "row_that_is_not_there", "slice_that_ends_with_its_array",
    "slice_that_begins_before_its_array", "gap_of_a_strided_array", "from_one_dynamic_array_into_the_next",
}  # fmt: skip
"""Mistakes of rows and slices, which the printed text does not have."""
PROMOTED = {"register_set_in_one_arm", "accumulator_without_a_start"}
"""Reads of elements of local arrays that were never written: LLVM promotes the arrays to registers, and the values are undefined."""
RETURNED = {"vote_of_all_in_a_branch", "match_in_a_loop_that_lanes_leave"}
"""Collectives in a branch or a loop at the end of a kernel: in C++ the lanes that leave it have returned."""
COMPUTED_EARLIER = {"product_after_a_write_of_its_registers"}
"""In LLVM's text registers are values, which may be computed before a fence."""
COMPONENTS = {"vectors_in_shared", "unsigned_vectors"}
"""Kernels that read a component of a vector in memory: C++ loads the component alone."""
DEAD_RESULTS = {"vector_addition_with_its_result"}
"""Kernels that assign the result of an atomic operation and do not read it: clang removes the result."""
ROOTS = {"accelerate", "gravity_leapfrog", "cutoff_potentials"}
"""Kernels with reciprocal square roots in f32: CUDA's function is an approximate instruction."""
LOCAL = ("local_loads", "local_stores", "branches", "divergent_branches")
"""Counters that depend on which local arrays are in registers."""


def test_printed_kernels_have_their_bits_and_memory_counters() -> None:
    trips = RoundTrips()
    for example in EXAMPLES:
        import_module(f"examples.kernels.{example}").check(trips.launch)
    for feature in FEATURES:
        feature.launch(trips.launch)
    for kernel in KERNELS:
        size, block = kernel.counted
        shape = {"grid": kernel.grid(size, block), "block": block, "shared": kernel.shared(size, block)}
        trips.launch(kernel.kernel, args=kernel.make(size, block), faults="return", **shape)
    assert trips.refused == {} and trips.bits.keys() <= ROOTS
    different = {name for name, wrong in trips.counters.items() if not set(wrong) <= set(LOCAL)}
    assert different <= COMPONENTS | DEAD_RESULTS


def test_mistakes_of_the_corpus_are_found_in_their_printed_text() -> None:
    missed, blamed = set(), set()
    for name, pair in PAIRS.items():
        for fixed in (False, True):
            request = pair.launch(fixed, "jit").request
            kernel, printed = read_back(request)
            result = st.launch(
                kernel, grid=request.grid, block=request.block, args=arguments(kernel, printed, request, True),
                shared=request.dynamic_shared + printed.carved_bytes, check="all", schedule=pair.schedule, device=pair.device,
                cooperative=pair.cooperative, cluster=pair.cluster, faults="return", step_limit=200,
            )  # fmt: skip
            if fixed and result.faults:
                blamed.add(name)
            if not fixed and {fault.kind for fault in result.faults} != {pair.fault}:
                missed.add(name)
    assert (missed, blamed) == (ROWS | PROMOTED | RETURNED | COMPUTED_EARLIER, set())
