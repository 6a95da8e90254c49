"""Observer that debugs launches of a program: it stops in a kernel at a finding, a line or a thread."""

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from types import FrameType

from simtbed import Device, Launch, LaunchError, SimtbedError
from simtbed.debugger.blocks import without_host_calls
from simtbed.debugger.commands import KernelDebugger
from simtbed.debugger.facts import linear_index
from simtbed.debugger.session import Session, find_fault
from simtbed.debugger.traces import run_trace
from simtbed.debugger.tracing import Place
from simtbed.errors import render
from simtbed.runtime.engine import Request
from simtbed.runtime.observing import NextLaunch, PendingLaunch
from simtbed.runtime.recording import Recorder
from simtbed.runtime.registry import EngineName
from simtbed.runtime.result import LaunchDetails

from ..printing import print_message, print_text
from ..terminal import progress


@dataclass
class Debugger:
    """Debugs the selected launches in the process of the program, with its standard input and output.

    kernel, number: the selected launches, as in `Run.select`. block, thread: an index or x,y,z; line: of the kernel's file.
    trace: whether to print the trace of the thread instead of stopping. only_findings: whether only a launch with a finding
    stops; it runs under these checks and its own on the jit engine first.
    """

    add: Callable[[Launch], object]
    kernel: str
    number: int | None
    block: str | None
    thread: str | None
    line: int | None
    only_findings: bool
    trace: bool
    check: frozenset[str]
    device: Device | None = None
    engine: EngineName = "python"
    launches: int = field(default=0, init=False)
    lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def observe(self, call: PendingLaunch, proceed: NextLaunch) -> LaunchDetails:
        compiled = replace(call, engine="jit", request=without_host_calls(call.request))
        with self.lock:
            start = time.perf_counter()
            result = proceed(compiled)
            seconds = time.perf_counter() - start
            self.add(Recorder(self.add).launch(call, result, result.faults, result.remarks, seconds))
            if self._is_selected(call):
                self._debug(call, proceed)
        return result

    def _is_selected(self, call: PendingLaunch) -> bool:
        if not fnmatchcase(call.request.specialisation.summary.name, self.kernel):
            return False
        self.launches += 1
        return self.number in (None, self.launches - 1)

    def _debug(self, call: PendingLaunch, proceed: NextLaunch) -> None:
        checks = self.check | call.request.checks if self.only_findings else self.check
        request = replace(call.request, checks=checks, show_prints=False, schedule=None)
        try:
            block = None if self.block is None else linear_index("block", self.block, request.grid)
            thread = None if self.thread is None else linear_index("thread", self.thread, request.block)
        except SimtbedError as error:
            print_message(f"simtbed: {error}")
            sys.exit(2)
        if self.trace:
            print_text(str(run_trace(_without_refused(request), block or 0, range(thread or 0, (thread or 0) + 1))))
            return
        if self.only_findings:
            session = self._session_of_fault(replace(call, engine="jit", request=request), proceed)
        elif _in_pool(request):
            return
        else:
            session = Session(_without_refused(request), block or 0)
        if session is None:
            return
        file = request.program.kernel.span.file

        def stops(place: Place, frame: FrameType) -> bool:
            if self.only_findings or place.block != session.block or thread not in (None, place.thread):
                return False
            return self.line is None or (frame.f_code.co_filename, frame.f_lineno) == (file, self.line)

        debugger = KernelDebugger(session)
        debugger.debug(stops)
        if debugger.place is None:
            print_message(
                f"simtbed: {request.specialisation.summary.name}: no thread of block {session.block} stops there"
            )
        if debugger.quitting:
            _end_program(int(debugger.fault is not None))

    def _session_of_fault(self, call: PendingLaunch, proceed: NextLaunch) -> Session | None:
        """Return the session of the block with the first finding; None without one."""
        compiled = proceed(replace(call, request=without_host_calls(call.request))).faults
        if not compiled or _in_pool(call.request):
            return None
        request = _without_refused(call.request)
        first = min(compiled, key=lambda fault: fault.blocks[-1:])
        with progress(f"{request.specialisation.summary.name} on the python engine") as show:
            finding = find_fault(request, first.blocks, lambda block: show(f"block {block}"))
        if finding is not None:
            return finding[0]
        for fault in compiled:
            print_message(f"{render(fault)}\n      the python engine has no such finding: it cannot stop there")
        return None


def _in_pool(request: Request) -> bool:
    """Return whether this is a process of a pool, which has no input and whose program waits for a result. Print so if it is."""
    if multiprocessing.parent_process() is None:
        return False
    name = request.specialisation.summary.name
    print_message(f"simtbed: {name}: no stop in a process of a pool: launch the kernel in the main process")
    return True


def _end_program(code: int) -> None:
    """End the program with an exit code. A thread of a pool would end alone, and the pool wait for its result."""
    if threading.current_thread() is threading.main_thread():
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _without_refused(request: Request) -> Request:
    """Return the launch without the check for races if the python engine refuses it for this kernel."""
    try:
        Session(request, 0)
    except LaunchError:
        return replace(request, checks=request.checks - {"races", "benign", "acquire"})
    return request
