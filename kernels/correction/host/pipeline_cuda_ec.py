"""Steps of Mangal and Jain's Table 4 with one thread per read: kernels and optimisations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from simtbed import DeviceArray, empty

from ...family import Launcher
from ..cuda_ec import BLOCK, cuda_ec
from ..thread_per_read import thread_per_read
from .layout import SHARED, Places, longest_read, read_arguments
from .problem import Bytes

SUCCESSOR = np.zeros(256, np.uint8)
"""Successor of each base in the cycle A, C, T, G, by ASCII code."""
SUCCESSOR[list(b"ACTG")] = list(b"CTGA")


@dataclass(frozen=True)
class Step:
    """One launch of the pipeline of CUDA-EC.

    original: with the costs that section 6.3 removes. spread: threads per read.
    """

    original: bool = False
    unroll: bool = False
    spread: int = 1

    def launch(self, text: Bytes, places: Places, arguments: dict[str, Any], launcher: Launcher) -> Any:
        """Launch the step; return `text` and `spans`. arguments: filter and thresholds."""
        args = {
            **read_arguments(text, places), **arguments, "LONGEST": longest_read(places),
            "copies": DeviceArray(empty(len(text) if self.original else 1, "u8")), "successor": SUCCESSOR,
            "SPREAD": self.spread, "ORIGINAL": self.original, "UNROLL": self.unroll,
        }  # fmt: skip
        return launcher.launch(cuda_ec, grid=-(-len(places) * self.spread // BLOCK), block=BLOCK, args=args)


class SharedStep:
    """Votes and reads in shared memory, without the three buffers. A block has fewer threads for long reads; reads too
    long for one warp have local and global memory instead."""

    def launch(self, text: Bytes, places: Places, arguments: dict[str, Any], launcher: Launcher) -> Any:
        """Launch the step as `Step.launch` does."""
        longest = longest_read(places)
        fitting = (SHARED - 1024) // (5 * longest) // 32 * 32
        threads, fits = min(fitting, BLOCK) or BLOCK, fitting > 0
        args = {
            **read_arguments(text, places), **arguments, "LONGEST": longest, "THREADS": threads, "SPREAD": 1, "UNROLL": True,
            "READS_IN_SHARED": fits, "VOTES_IN_SHARED": fits,
        }  # fmt: skip
        return launcher.launch(thread_per_read, grid=-(-len(places) // threads), block=threads, args=args)
