"""Process profiled by Nsight Compute: makes the accesses of a file, one a launch."""

import sys
from pathlib import Path

from ..profile.accesses import read
from .single_accesses import launch_all


def main(listed: str) -> None:
    """Make the accesses of a CSV file on the GPU, in order."""
    for _ in launch_all(read(Path(listed)), "cuda"):
        pass


if __name__ == "__main__":
    main(sys.argv[1])
