"""What a word of a kernel needs of a device: what a launch looks at, without the passes that find it."""

from __future__ import annotations

from dataclasses import dataclass

Capability = tuple[int, int]
"""Compute capability: major, minor."""


@dataclass(frozen=True)
class Needed:
    """What a word of a kernel needs. place: file and line."""

    word: str
    capability: Capability
    place: str
