"""Child process of `simtbed bench`: compile time and memory of one workload."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simtbed.engines.llvm.engine import LlvmEngine

from .kernels import SMALL, Size, works

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def started(name: str, size: Size) -> dict[str, float | None]:
    """{"front_end": s, "compile": s, "memory": bytes or None}, one thread, counting.

    front_end: time of the first request of a small launch less the second. compile: its first run less the second, that is code
    generation and LLVM, or a cache read. memory: increase of the peak resident memory by a launch of `size`, less the returned
    arrays; None without /proc of Linux.
    """
    engine = LlvmEngine(threads=1)
    small, full = ({w.name: w for w in works(of)}[name] for of in (SMALL, size))
    first, _ = _timed(small.request)
    again, request = _timed(small.request)
    cold, _ = _timed(lambda: engine.run(request))
    warm, _ = _timed(lambda: engine.run(request))
    large = full.request()
    before = _restart_peak()
    outcome = engine.run(large)
    returned = sum(buffer.nbytes for buffer in outcome.buffers.values())
    memory = None if before is None else _kilobytes("VmHWM") * 1024 - before - returned
    return {"front_end": first - again, "compile": cold - warm, "memory": memory}


def _timed(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def _restart_peak() -> int | None:
    """Reset the peak of resident memory; return the current bytes.

    `resource.getrusage` is unsuitable: ru_maxrss never falls, and on Linux a process inherits that of its parent.
    """
    try:
        _CLEAR.write_text("5")
        return _kilobytes("VmRSS") * 1024
    except OSError:
        return None


def _kilobytes(field: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(field + ":"))
    return int(line.split()[1])


if __name__ == "__main__":
    print(json.dumps(started(sys.argv[1], Size(*map(int, sys.argv[2:])))))
