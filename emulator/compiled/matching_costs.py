"""Costs of a match between source and SASS. The unit is a missing effect."""

from __future__ import annotations

COST_MISSING_EFFECT = 1.0
"""Cost of a missing or excess effect (all of a statement list's amount at a location), or iteration. The unit of all costs."""
COST_MISSING_LOAD = 0.9
"""Cost of a missing or excess load or local access: lower, as the compiler hoists and drops these."""
COST_WRONG_BRANCH = 0.3
"""Cost of a path through the wrong arm of a branch: below any effect, as the compiler may use predication instead."""
COST_NARROW_DIVISION = 0.1
"""Cost of a 32-bit division next to a call of the 64-bit division (`Graph.narrow_divisions`): above the code of the call."""
COST_MISSING_INSTRUCTION = 0.01
"""Cost of missing or unexpected code, per instruction: low, as address computations and constants move freely. Excess is free."""
COST_INSTRUCTION, COST_TRIP = 1e-5, 0.005
"""Tie-breakers: prefer fewer trips of compiled loops, as tests enter the largest unrolled body, then fewer instructions."""
PREDICATED_COST_SHARE = 0.008
"""Cost of matching predicated instructions, relative to missing ones: above COST_TRIP, as they serve remainder iterations."""
GAP_COST_SHARE = 1 / 32
"""Surcharge for a node matching events around skipped ones, relative to the cost of these: prefers matches in order."""
