"""Schemas of the files of a project: baselines, known findings, recorded launches. Imported where a file is read: msgspec is."""

from typing import Annotated, Any, Literal

import msgspec

from ..profiler.events import DERIVED, MEANING, RULES
from .figures import COMPILED

Text = Annotated[str, msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Ratio = Annotated[float, msgspec.Meta(ge=0, le=1e18)]
Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]
Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]
_FRACTIONS = ("warp_execution_efficiency", "branch_efficiency", "shared_efficiency")
"""Other efficiencies exceed 1 where lanes share bytes."""


def _table(name: str, required: dict[str, Any], optional: dict[str, Any], **more: Any) -> type[msgspec.Struct]:
    """Return the schema of a table without other keys than these."""
    fields: list[Any] = [(f"_{n}", form) for n, form in enumerate(required.values())]
    fields += [
        (f"_{n}", form | msgspec.UnsetType, msgspec.UNSET) for n, form in enumerate(optional.values(), len(fields))
    ]
    names = {f"_{n}": key for n, key in enumerate((*required, *optional))}
    return msgspec.defstruct(name, fields, rename=names, forbid_unknown_fields=True, kw_only=True, **more)


_counters: dict[str, Any] = dict.fromkeys(MEANING, Count)
Figures: Any = _table(
    "Figures",
    {"launches": Annotated[int, msgspec.Meta(ge=1, le=(1 << 63) - 1)], "occupancy": Percent, "shared_bytes": Count},
    {
        **_counters,
        **{name: Fraction if name in _FRACTIONS else Ratio for name in DERIVED},
        **dict.fromkeys(COMPILED, Count),
        "compiled_occupancy": Percent,
    },
)
Line: Any = _table("Line", {"function": str, "line": Count, "source": str}, _counters)
Rules = Annotated[int, msgspec.Meta(ge=1, le=RULES)]
Baseline: Any = _table(
    "Baseline", {"device": Text, "rules": Rules, "figures": Figures}, {"compiler": Text, "lines": list[Line]}
)


class Pin(msgspec.Struct, forbid_unknown_fields=True):
    """A known finding."""

    kind: Annotated[str, msgspec.Meta(pattern=r"\S")]
    file: Annotated[str, msgspec.Meta(pattern=r"\S")]
    line: Annotated[str, msgspec.Meta(pattern=r"\S")]
    reason: Annotated[str, msgspec.Meta(pattern=r"\S")]


class KnownFindings(msgspec.Struct, forbid_unknown_fields=True):
    """The file of known findings."""

    findings: list[Pin] = msgspec.field(name="known", default_factory=list)


class Launches(msgspec.Struct, forbid_unknown_fields=True):
    """The record of the launches of a run."""

    format: Literal["simtbed launches"]
    version: Literal[1]
    tests: dict[str, dict[str, list[str]]]
