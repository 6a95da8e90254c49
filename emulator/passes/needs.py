"""Requirements of a kernel on the device's compute capability, as a record that launches read without the passes."""

from dataclasses import dataclass

Capability = tuple[int, int]
"""Compute capability: major, minor."""


@dataclass(frozen=True)
class Needed:
    """A word of a kernel and its required compute capability. place: file and line."""

    word: str
    capability: Capability
    place: str
