"""The steps of Mangal and Jain's Table 4 that a thread a read takes: which kernel, with which of its optimisations."""

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
"""The next one of A, C, T, G and A again, by ASCII code."""
SUCCESSOR[list(b"ACTG")] = list(b"CTGA")


@dataclass(frozen=True)
class Step:
    """original: with what section 6.3 removes. spread: threads that share a read's place."""

    original: bool = False
    unroll: bool = False
    spread: int = 1

    def launch(self, text: Bytes, places: Places, arguments: dict[str, Any], launcher: Launcher) -> Any:
        """What `text` and `spans` become. arguments: of the filter, and the thresholds."""
        args = {
            **read_arguments(text, places), **arguments, "LONGEST": longest_read(places),
            "copies": DeviceArray(empty(len(text) if self.original else 1, "u8")), "successor": SUCCESSOR,
            "SPREAD": self.spread, "ORIGINAL": self.original, "UNROLL": self.unroll,
        }  # fmt: skip
        return launcher.launch(cuda_ec, grid=-(-len(places) * self.spread // BLOCK), block=BLOCK, args=args)


class SharedStep:
    """Votes and reads in shared memory, and without the three buffers; where a block's would not fit, in fewer threads, and
    those of a read too long for any in local and global memory."""

    def launch(self, text: Bytes, places: Places, arguments: dict[str, Any], launcher: Launcher) -> Any:
        """As `Step.launch`."""
        longest = longest_read(places)
        fitting = (SHARED - 1024) // (5 * longest) // 32 * 32
        threads, fits = min(fitting, BLOCK) or BLOCK, fitting > 0
        args = {
            **read_arguments(text, places), **arguments, "LONGEST": longest, "THREADS": threads, "SPREAD": 1, "UNROLL": True,
            "READS_IN_SHARED": fits, "VOTES_IN_SHARED": fits,
        }  # fmt: skip
        return launcher.launch(thread_per_read, grid=-(-len(places) // threads), block=threads, args=args)
