"""Explanations of the variants of site frequency spectra: section of the paper, mapping to threads, memory layout."""

from __future__ import annotations

from ..family import Explained

_INTERLEAVED = """\
global memory:               h[0] of site 0, 1, 2, ... | h[1] of site 0, 1, 2, ... | ...     adjacent lanes
                             vectors likewise, individual by individual"""
_VECTORS = """\
global memory, a site:       v1 | v2 | v3 | v4 ...      a level's vectors, one after another
                             v1 (x) v2 | v3 (x) v4 ...  the next level's, in the other of two arrays"""
_STEP = """\
c = a (x) b                  lane i has a[i]; in step j all lanes add to c[i + j], then a barrier"""
_EXPONENTS = """\
                             exponents, one for 32 coefficients: coefficient j is mantissa[j] 2^exponent[j // 32]"""
_SHARED = """\
shared memory, a team:       inner[128]  a block of b      window[128 + team - 1]  the section of c that a stage adds to; it moves with a"""


_PLAIN_CHOICES = (
    "Each vector is divided by its sum, so that products are in the range of doubles; the logarithms of the sums are added at the end.",
    "An odd vector passes to the next level.",
)
_SHARED_CHOICES = (
    "A block has two warps with a merge each, and 128 coefficients of b per warp, 2,296 bytes.",
    "Warps synchronise after each step of b; the paper relies on lockstep execution.",
)


def _merges(section: str, team: str, shared: bool, plain: bool, skip: bool = False) -> Explained:
    mapping = f"A {team} merges two vectors, with one coefficient of a per thread; a launch computes one level."
    if skip:
        mapping += " The vector with more zeros is a, and a thread with a zero coefficient skips its scan."
    diagrams = [_VECTORS, *([] if plain else [_EXPONENTS]), *([_SHARED] if shared else []), _STEP]
    choices = (_PLAIN_CHOICES if plain else ()) + (_SHARED_CHOICES if shared and team == "warp" else ())
    return Explained(section, mapping, "\n".join(diagrams), choices)


def _scaled(team: str, shared: bool, skip: bool = False) -> Explained:
    """A reduction with exponents, which the paper does not have: it divides no vector and its products may underflow."""
    return _merges("ours: exponents for section 3.4", team, shared, plain=False, skip=skip)


_WARP_ORDER, _BLOCK_ORDER = "Section 3.4, Figures 4 and 6", "Section 3.4, Figure 11 (explicit synchronization)"

EXPLAINED: dict[str, Explained] = {
    "iterative": Explained(
        "Section 3.1, Algorithm 1",
        "One thread computes one site, individual after individual, from the last coefficient down: three loads and one store per step.",
        _INTERLEAVED,
        (
            "Each vector is divided by its sum, so that products are in the range of doubles.",
            "Line 5 stores h[0] = p_mm first, as lines 7 to 12 need it; it is reversed in print.",
            "The coefficients of neighbouring sites are adjacent, for coalesced accesses.",
        ),
    ),
    "iterative-carried": Explained(
        "ours: Algorithm 1 from the first coefficient up",
        "One thread computes one site; registers carry contributions to the next two coefficients: one load, one store per step.",
        f"{_INTERLEAVED}\n{_EXPONENTS}",
    ),
    "reduction": _merges(_WARP_ORDER, "warp", shared=False, plain=True),
    "reduction-shared": _merges("Section 3.4, Figure 5", "warp", shared=True, plain=True),
    "reduction-shared-skip": _merges("Sections 3.3 and 3.4, Figure 5", "warp", shared=True, plain=True, skip=True),
    "reduction-shared-block": _merges(_BLOCK_ORDER, "block", shared=True, plain=True),
    "reduction-scaled": _scaled("warp", shared=False),
    "reduction-block-scaled": _scaled("block", shared=False),
    "reduction-shared-scaled": _scaled("warp", shared=True),
    "reduction-shared-block-scaled": _scaled("block", shared=True),
    "reduction-shared-skip-scaled": _scaled("warp", shared=True, skip=True),
    "reduction-shared-skip-block-scaled": _scaled("block", shared=True, skip=True),
    "tiled": Explained(
        "ours",
        "A thread multiplies tiles of 17 coefficients in registers; a block computes whole sites, level by level.",
        """\
shared memory, a block:      tiles of 17 coefficients with an exponent each, side by side
registers, a thread:         low[17]  high[17]  the two tiles that a product of tiles adds to""",
    ),
}
