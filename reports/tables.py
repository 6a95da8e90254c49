"""How results look: tables for people, the same content as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]], left: int = 1) -> str:
    """A plain table; the first `left` columns are text, the others figures. Numbers get thousands separators."""
    from tabulate import tabulate  # which takes longer to import than most commands need for all else

    shown = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    aligned = ["left" if column < left else "right" for column in range(len(headers))]
    return tabulate(shown, headers=headers, disable_numparse=True, colalign=aligned if shown else None)


def as_json(content: Mapping[str, Any]) -> str:
    """The content as JSON text."""
    return json.dumps(content, indent=1)
