"""The page of the language states the bounds of the table."""

import math
from pathlib import Path

from simtbed.ir.maths import ROWS
from simtbed.ir.op import Op
from simtbed.language.types import F64, Scalar

PAGE = Path(__file__).parents[2] / "docs/language.md"


def _bound(row: Op, type: Scalar) -> str:
    if type not in row.types:
        return ""
    policy = row.policy_for(type)
    if policy.name == "bits":
        return "same bits"
    stated = [f"{policy.ulp} ulp"] if policy.ulp else []
    if policy.absolute:
        power = math.log2(policy.absolute)
        stated.append(f"2^{power:.4g}")
    return " or ".join(stated)


def table() -> str:
    """One line for functions that have the same bounds."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in ROWS:
        groups.setdefault((_bound(row, row.types[0]), _bound(row, F64)), []).append(row.name)
    lines = ["| functions | f32 | f64 |", "|---|---|---|"]
    for (single, double), names in groups.items():
        lines.append(f"| {', '.join(f'`{name}`' for name in names)} | {single} | {double} |")
    return "\n".join(lines)


def test_the_page_has_the_bounds() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), f"docs/language.md does not have this table:\n{table()}"
