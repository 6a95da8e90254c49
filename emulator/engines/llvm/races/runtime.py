"""Functions of `sanitizer.races` called by compiled kernels.

A kernel receives one table of int64: the addresses of these functions, then those of the arrays of the race state.
"""

import numpy as np
import numpy.typing as npt

from ....ir.effects import row_of
from ....ir.walk import statements
from ....native import Native
from ....sanitizer.races import detect, happens_before
from ....sanitizer.races.shadow import RaceState
from ....sanitizer.tracking import Plan

FUNCTIONS: dict[str, Native] = {
    "begin_block": happens_before.begin_block,
    "barrier": happens_before.barrier,
    "fence": happens_before.fence,
    "commit_copies": happens_before.commit_copies,
    "wait_for_copies": happens_before.wait_for_copies,
    "order_async": happens_before.order_async,
    "syncwarp": happens_before.syncwarp,
    "access": detect.access,
}
"""Functions in the order of their addresses in the table."""


def table(race_state: RaceState, plan: Plan) -> npt.NDArray[np.int64]:
    """Return the table of a race state, which must outlive it. Functions without calls in the kernel have the address 0."""
    called = {"begin_block"}
    for stmt in statements(plan.kernel.body):
        row = row_of(stmt)
        called |= {row.transition} if row is not None and row.transition else set()
    if any(tracked.for_races for tracked in plan.tracked.values()):
        called.add("access")
    addresses = [FUNCTIONS[name].address() if name in called else 0 for name in FUNCTIONS]
    return np.array([*addresses, *(np.asarray(array).ctypes.data for array in race_state)], np.int64)
