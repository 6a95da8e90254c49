"""Process profiled by Nsight Compute: runs cases on the GPU and logs its launches."""

import json
import sys
from pathlib import Path

from .cases import find
from .recording import RecordingLauncher


def main(log: str, only: str, names: list[str]) -> None:
    """Run the cases that match `only`; write a list of [case, digest of the printed kernel] to `log`."""
    launched: list[tuple[str, str]] = []
    for case in find(names, only):
        launcher = RecordingLauncher("cuda")
        case.run(launcher)
        launched += [(case.name, one.digest) for one in launcher.order]
    Path(log).write_text(json.dumps(launched), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
