"""How results look: tables for people, the same content as JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]], left: int = 1) -> str:
    """A plain table; the first `left` columns are text, the others figures. Numbers get thousands separators."""
    from tabulate import tabulate  # which takes longer to import than most commands need for all else

    shown = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    aligned = ["left" if column < left else "right" for column in range(len(headers))]
    return tabulate(shown, headers=headers, disable_numparse=True, colalign=aligned if shown else None)


def as_json(content: Mapping[str, Any]) -> str:
    """The content as JSON text; NumPy's scalars are Python's. JSON has no infinite numbers: they are null, as what is no
    number."""
    return json.dumps(_finite(content), indent=1, allow_nan=False, default=lambda scalar: scalar.item())


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, (list, tuple)) else value
