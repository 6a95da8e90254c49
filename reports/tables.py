"""Output of results as plain tables and as JSON."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from simtbed.escaping import Document, json_text, printable


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]], left: int = 1) -> str:
    """Return a table. The first `left` columns are left-aligned, the others right-aligned; integers have thousands separators."""
    from tabulate import tabulate  # late: its import takes longer than most commands

    shown = [[f"{cell:,}" if isinstance(cell, int) else printable(cell) for cell in row] for row in rows]
    aligned = ["left" if column < left else "right" for column in range(len(headers))]
    return tabulate(shown, headers=headers, disable_numparse=True, colalign=aligned if shown else None)


def as_json(content: Mapping[str, Any] | Sequence[Any]) -> Document:
    """Return the content as JSON; NumPy scalars are converted, infinities and NaN are null."""
    return json_text(json.dumps(_finite(content), indent=1, allow_nan=False, default=lambda scalar: scalar.item()))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(member) for name, member in value.items()}
    return [_finite(member) for member in value] if isinstance(value, (list, tuple)) else value
