"""How each variant of site frequency spectra works: where the paper says it, what a thread does, where values stand."""

from __future__ import annotations

from ..family import Explained

_INTERLEAVED = """\
global memory:               h[0] of site 0, 1, 2, ... | h[1] of site 0, 1, 2, ... | ...     lanes stand side by side
                             vectors, in the same way, individual by individual"""
_VECTORS = """\
global memory, a site:       v1 | v2 | v3 | v4 ...      a level's vectors, one after another
                             v1 (x) v2 | v3 (x) v4 ...  the next level's, in the other of two arrays"""
_STEP = """\
c = a (x) b                  lane i holds a[i]; in step j all lanes add to c[i + j], and meet"""
_EXPONENTS = """\
                             exponents, one for 32 coefficients: coefficient j is mantissa[j] 2^exponent[j // 32]"""
_SHARED = """\
shared memory, a team:       inner[128]  a block of b      window[128 + team - 1]  what a stage reaches of c; it moves with a"""


def _merges(section: str, team: str, shared: bool, plain: bool, skip: bool = False) -> Explained:
    mapping = f"A {team} merges two vectors, a thread a coefficient of a; a launch is a level."
    if skip:
        mapping += " The vector with more zeros is a, and a thread whose coefficient is zero leaves its scan out."
    diagrams = [_VECTORS, *([] if plain else [_EXPONENTS]), *([_SHARED] if shared else []), _STEP]
    return Explained(section, mapping, "\n".join(diagrams))


_WARP_ORDER, _BLOCK_ORDER = "Section 3.4, Figures 4 and 6", "Section 3.4, Figure 11 (explicit synchronization)"

EXPLAINED: dict[str, Explained] = {
    "iterative": Explained(
        "Section 3.1, Algorithm 1",
        "One thread computes one site, individual after individual, from the last coefficient down: three loads and one store a step.",
        _INTERLEAVED,
    ),
    "iterative-carried": Explained(
        "ours: Algorithm 1 from the first coefficient up",
        "One thread computes one site; what the next two coefficients are owed is carried in registers: one load, one store a step.",
        f"{_INTERLEAVED}\n{_EXPONENTS}",
    ),
    "reduction-plain": _merges(_WARP_ORDER, "warp", shared=False, plain=True),
    "reduction-shared-plain": _merges("Section 3.4, Figure 5", "warp", shared=True, plain=True),
    "reduction-shared-skip-plain": _merges(
        "Sections 3.3 and 3.4, Figure 5", "warp", shared=True, plain=True, skip=True
    ),
    "reduction": _merges(_WARP_ORDER, "warp", shared=False, plain=False),
    "reduction-block": _merges(_BLOCK_ORDER, "block", shared=False, plain=False),
    "reduction-shared": _merges("Section 3.4, Figure 5", "warp", shared=True, plain=False),
    "reduction-shared-block": _merges(_BLOCK_ORDER, "block", shared=True, plain=False),
    "reduction-shared-skip": _merges("Sections 3.3 and 3.4, Figure 5", "warp", shared=True, plain=False, skip=True),
    "reduction-shared-skip-block": _merges(_BLOCK_ORDER, "block", shared=True, plain=False, skip=True),
    "tiled": Explained(
        "ours",
        "A thread multiplies tiles of 17 coefficients in registers; a block computes whole sites, level by level.",
        """\
shared memory, a block:      tiles of 17 coefficients with an exponent each, side by side
registers, a thread:         low[17]  high[17]  the two tiles that a product of two reaches""",
    ),
}
