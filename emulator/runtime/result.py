"""Results of launches: written arrays, counters, faults."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import get_annotations
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..checked import shown
from ..errors import Diagnostic, SimtbedError, render
from ..escaping import html
from ..ir.names import Name, components
from .arrays import Buffer
from .engine import Deferred, PendingOutcome, Request, Resources
from .registry import compiled_view, cuda_text
from .streams import wait_for

if TYPE_CHECKING:  # counters are used by few programs: their code is imported on demand
    from ..machine.occupancy import Occupancy
    from ..profiler.counters import Counters
    from ..profiler.events import Counts
    from ..profiler.launch_memory import LaunchMemory
    from ..profiler.profile import Profile
    from ..profiler.samples import Samples

_UNCOUNTED = "nothing was counted: engine jit or numpy counts, and only with counters=True"


@dataclass(repr=False)
class LaunchDetails:
    """Everything but the arrays of a result, `result.launch`.

    Attributes
    ----------
    buffers : the written global arrays by name, without device arrays.
    faults : errors found by the emulator.
    remarks : other findings: unwritten elements of outputs, races that write the same value, suppressed findings, and
        unused suppressions.
    printed : lines of the kernel's `print`, with block and thread; a GPU prints to stdout only.
    milliseconds, resources : of the kernel on the GPU; None on an emulator.
    counts : int64[site, column] for the sites of the request's program, columns as in `profiler.events`; None without counters.
    trace : on the python engine, the frames of the kernel at the fault; not pickled.
    samples : with detail=True. memory : with compiled=True, the arrays before the launch. written : as in `Outcome`.
    """

    buffers: dict[str, Buffer]
    faults: list[Diagnostic]
    remarks: list[Diagnostic]
    printed: list[str]
    milliseconds: float | None
    resources: Resources | None
    request: Request = field(repr=False)
    counts: Counts | None = Deferred()  # type: ignore[assignment]  # noqa: RUF009
    samples: Samples | None = field(default=None, repr=False)
    memory: LaunchMemory | None = field(default=None, repr=False)
    written: Mapping[str, Buffer] = field(default_factory=dict, repr=False)
    trace: TracebackType | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        self.wait()
        state = {**vars(self), "request": self.request, "trace": None, "_counts": self.counts}
        state.pop("_request", None)
        return state

    def __repr__(self) -> str:
        facts = (f"{name} {value}" for name, value in self._facts())
        return f"{self.request.specialisation.summary.name}: {'; '.join(facts)}"

    def _repr_html_(self) -> str:
        """Return a small table for notebooks."""
        rows = "".join(f"<tr><th>{html(name)}</th><td>{html(value)}</td></tr>" for name, value in self._facts())
        return f"<table><caption>{html(self.request.specialisation.summary.name)}</caption>{rows}</table>"

    def _facts(self) -> Iterator[tuple[str, str]]:
        """Yield short facts about the launch, each with its name."""
        for name, array in self.buffers.items():
            yield Name.parse(name).user, f"{array.dtype}[{', '.join(map(str, array.shape))}]"
        yield "faults", str(len(self.faults))
        if self.remarks:
            yield "remarks", str(len(self.remarks))
        if self.printed:
            yield "printed", f"{len(self.printed):,} lines"
        if self.milliseconds is not None:
            yield "milliseconds", f"{self.milliseconds:.3g}"
        if self.counts is not None:
            yield "warp instructions", f"{self.counters.total('warp_instructions'):,}"

    def writes(self, name: str) -> bool:
        """Return whether the kernel writes a global array of this name, in a device array or not. A launch in progress continues."""
        request = self.request
        owners = (request.owners.get(array, (array,))[0] for array in request.specialisation.summary.changed)
        return name in owners

    def array(self, name: str) -> Buffer:
        """Return a written array; a field of a struct is named as in "a.b". Raises SimtbedError if there is none of this name."""
        record, *path = name.split(".")
        own = components(record, path)
        if own in self.buffers:
            return self.buffers[own]
        if self.writes(own):
            raise SimtbedError(f"{name} is a DeviceArray: read the argument, {name}.numpy()")
        written = ", ".join(Name.parse(own).user for own in self.buffers)
        raise SimtbedError(f"the kernel does not write {name}; it writes {written or 'nothing'}")

    @staticmethod
    def pending(request: Request | Callable[[], Request], launch: PendingOutcome) -> LaunchDetails:
        """Return the details of a launch in progress. request: or a function that returns it."""
        result = object.__new__(LaunchDetails)  # without the fields: `__getattr__` waits for them
        vars(result).update({"_request" if callable(request) else "request": request, "_launch": launch})
        return result

    def wait(self) -> None:
        """Wait for the end of the launch. Raises LaunchError, which names the launch, if it failed."""
        wait_for(vars(self).pop("_clock", {}))
        launch = vars(self).get("_launch")
        if launch is not None:
            outcome, request = launch.finish(), self.request
            buffers = request.shaped(outcome.buffers)
            LaunchDetails.__init__(
                self, buffers, [], [], outcome.printed, outcome.milliseconds, outcome.resources, request
            )
            vars(self).pop("_launch", None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "request" and "_request" in vars(self):
            vars(self)["request"] = vars(self).pop("_request")()
            return vars(self)["request"]
        if "_launch" in vars(self):
            self.wait()
            return getattr(self, name)
        raise AttributeError(
            f"the details of a launch have no {name}: arrays are items of the result", name=name, obj=self
        )

    @cached_property
    def counters(self) -> Counters:
        """Counters by source line. Raises SimtbedError without counters."""
        if self.counts is None:
            raise SimtbedError(_UNCOUNTED)
        from ..profiler.counters import Counters

        sites = ((s.kind, s.span, s.size, s.costs) for s in self.request.prepared.sites)
        return Counters.from_sites(sites, self.counts, self.request.device.sector)

    def profile(self) -> Profile:
        """Return the costs of the launch by source position and by array. Raises SimtbedError without counters."""
        if self.counts is None:
            raise SimtbedError(_UNCOUNTED)
        from .kernel_description import describe_kernel

        return describe_kernel(self.request).profile(self.counts, self.request.device, samples=self.samples)

    def compiled(self) -> Any:
        """Execute nvcc's machine code of the kernel, and return it with its counts: a
        `simtbed.compiled.kernel.CompiledKernel`.

        Raises SimtbedError without compiled=True or for an instruction that is not emulated, LaunchError without nvcc
        and nvdisasm.
        """
        if self.counts is None or self.memory is None:
            raise SimtbedError("the compiled view executes the launch again: launch with compiled=True on an emulator")
        return compiled_view(self.request, self.counts, self.memory)

    @property
    def source(self) -> str:
        """The kernel as CUDA C++, or its own text in the language of another front end."""
        text = self.request.specialisation.text
        return cuda_text(self.request) if text is None else text

    @property
    def occupancy(self) -> Occupancy:
        """Theoretical occupancy on the request's device. Registers are known after a compilation (a result of the cuda
        engine); otherwise they are assumed not to limit it."""
        from ..machine.occupancy import occupancy

        request = self.request
        registers = self.resources.registers if self.resources else 0
        return occupancy(request.device, int(np.prod(request.block)), registers, self.shared_bytes)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block in bytes, static and dynamic."""
        return self.request.dynamic_shared + self.request.prepared.shared


_MEMBERS = frozenset(name for name in (*vars(LaunchDetails), *get_annotations(LaunchDetails)) if name[0] != "_") - {
    "array",
    "pending",
    "writes",
} | {"launch"}
"""Names of a result that are no arrays."""


class StartedLaunch(Protocol):
    """A launch whose details are made on demand: most programs do not read them."""

    def details(self) -> LaunchDetails: ...


class Result:
    """The result of a launch.

    `result["name"]` is a written global array, and `result.launch.name` one of the details: counters, faults, source and so on.
    `result.name` is either. SimtbedError is raised if an array and one of the details have this name.
    """

    __slots__ = ("__weakref__", "_source")

    launch: LaunchDetails
    buffers: dict[str, Buffer]
    faults: list[Diagnostic]
    remarks: list[Diagnostic]
    printed: list[str]
    milliseconds: float | None
    resources: Resources | None
    request: Request
    counts: Counts | None
    samples: Samples | None
    memory: LaunchMemory | None
    written: Mapping[str, Buffer]
    trace: TracebackType | None
    counters: Counters
    source: str
    occupancy: Occupancy
    shared_bytes: int
    profile: Callable[[], Profile]
    compiled: Callable[[], Any]
    wait: Callable[[], Result]

    def __init__(self, source: LaunchDetails | StartedLaunch) -> None:
        self._source = source

    @property
    def _details(self) -> LaunchDetails:
        if not isinstance(self._source, LaunchDetails):
            self._source = self._source.details()
        return self._source

    def __repr__(self) -> str:
        return f"<Result of {self._details!r}>"

    def _repr_html_(self) -> str:
        """Return a small table for notebooks."""
        return self._details._repr_html_()

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *_MEMBERS, *self._details.buffers})

    def __reduce__(self) -> tuple[Any, ...]:
        return Result, (self._details,)

    def __getitem__(self, name: str) -> Buffer:
        return self._details.array(name if isinstance(name, str) else shown(name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        details = self._details
        if name not in _MEMBERS:
            try:
                return details.array(name)
            except SimtbedError as error:
                raise AttributeError(f"a result has no {name}: {error}", name=name, obj=self) from None
        if details.writes(name):
            member = "rename the parameter" if name == "launch" else f"write result.launch.{name}"
            raise SimtbedError(
                f'{name} is an array of the kernel and a member of the result: write result["{name}"] for the array; '
                f"{member} for the member"
            )
        if name == "launch":
            return details
        return self._wait if name == "wait" else getattr(details, name)

    def _wait(self) -> Result:
        """Wait for the end of the launch, and return the result. Raises LaunchError, which names the launch, if it failed."""
        self._details.wait()
        return self


def details_of(result: Result) -> LaunchDetails:
    """Return the details of a result, whatever the names of its arrays are."""
    return result._details


def in_words(findings: Iterable[Diagnostic], words: Mapping[str, str]) -> list[Diagnostic]:
    """Return findings with the language's words replaced (`LaunchableKernel.words`)."""
    findings = list(findings)
    if not words or not findings:
        return findings
    pattern = re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))

    def translated(text: str) -> str:
        return pattern.sub(lambda match: words[match[0]], text)

    return [
        replace(
            one,
            message=translated(one.message),
            notes=tuple(map(translated, one.notes)),
            remedy=tuple(replace(insertion, statement=translated(insertion.statement)) for insertion in one.remedy),
        )
        for one in findings
    ]


class FaultError(SimtbedError):
    """Raised for faults found by the emulator. result: the complete result of the launch.

    On the python engine its traceback ends in the kernel, for a debugger.
    """

    def __init__(self, details: LaunchDetails) -> None:
        super().__init__("\n".join(render(fault) for fault in details.faults))
        self.details, self.result = details, Result(details)
        self.trace = details.trace

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the result: the text is derived from it."""
        return FaultError, (self.details,)
