"""Schemas of the records of a GPU: answers and counters, and times. Imported where a record is read: msgspec is."""

from typing import Annotated, Any

import msgspec
from simtbed.compiled.pipes import PIPES

from .figures import FIGURES

Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Figure = Annotated[float, msgspec.Meta(ge=0, le=1e18)]
Time = Annotated[float, msgspec.Meta(gt=0, le=1e18)]


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A table with these keys and no others."""


Figures: Any = msgspec.defstruct("Figures", [(figure.name, Figure) for figure in FIGURES], forbid_unknown_fields=True)
Pipes: Any = msgspec.defstruct("Pipes", [(pipe, Count) for pipe in PIPES], forbid_unknown_fields=True)


class Kernel(Strict):
    """Counters of a printed kernel in one case."""

    kernel: str
    source: str
    launches: Count
    registers: Count
    shared_bytes: Count
    figures: Figures
    pipes: Pipes
    sass: list[Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]+ \d+(,\d+)* \d+ \d+ .")]]
    cubin: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9+/=]*$")] = ""


class Answer(Strict):
    """Digests of the printed kernels and of the outputs of a case."""

    sources: list[str]
    output: str | msgspec.UnsetType = msgspec.UNSET
    launches: Count | msgspec.UnsetType = msgspec.UNSET
    milliseconds: Figure | msgspec.UnsetType = msgspec.UNSET
    registers: Count | msgspec.UnsetType = msgspec.UNSET
    rounding: Figure | msgspec.UnsetType = msgspec.UNSET


class Output(Strict):
    """Digest of the outputs of an operation, or the tolerance of its comparison."""

    output: str | msgspec.UnsetType = msgspec.UNSET
    policy: str | msgspec.UnsetType = msgspec.UNSET
    ulp: Count | msgspec.UnsetType = msgspec.UNSET


class Operation(Strict):
    """Digests of the printed kernels and of the outputs of operations."""

    sources: list[str]
    rows: dict[str, Output]


class Record(Strict):
    """A record of answers and counters."""

    device: str
    gpu: str
    arch: str
    driver: str
    toolkit: str
    profiler: str
    dated: str
    counters: dict[str, list[Kernel]]
    answers: dict[str, Answer]
    operations: dict[str, Operation]
    waiting: list[str]


Metrics = dict[str, Figure]


class Traffic(Strict):
    """Hit rates and bytes of a launch with empty caches."""

    l1_hit: Figure
    l2_hit: Figure
    dram_bytes: Figure
    metrics: Metrics | msgspec.UnsetType = msgspec.UNSET


class Times(Strict):
    """Times of a launch; with hit rates and bytes, if they were measured."""

    warm_us: Time
    cold_us: Time
    registers: Count | msgspec.UnsetType = msgspec.UNSET
    source: str | msgspec.UnsetType = msgspec.UNSET
    l1_hit: Figure | msgspec.UnsetType = msgspec.UNSET
    l2_hit: Figure | msgspec.UnsetType = msgspec.UNSET
    dram_bytes: Figure | msgspec.UnsetType = msgspec.UNSET
    metrics: Metrics | msgspec.UnsetType = msgspec.UNSET
    cold: Traffic | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if len({value is msgspec.UNSET for value in (self.l1_hit, self.l2_hit, self.dram_bytes)}) > 1:
            raise ValueError("expected l1_hit, l2_hit and dram_bytes, or none of them")


class TimesRecord(Strict):
    """A record of times."""

    device: str
    launches: Annotated[dict[str, Times], msgspec.Meta(min_length=1)]
    clocks: list[str] = []
    dated: str = ""
    failed: dict[str, str] = {}
    empty_us: Figure | msgspec.UnsetType = msgspec.UNSET
