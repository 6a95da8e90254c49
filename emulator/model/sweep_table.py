"""Table of a what-if sweep: a row per launch and configuration, and the best choice among those with equal outputs."""

import csv
import io
from collections import defaultdict
from typing import Any

from ..checked import one_of
from ..escaping import csv_cell, html
from .outputs import Agreement

COLUMNS = (
    "kernel", "launch", "device", "grid", "block", "const", "time_us", "low_us", "high_us", "bound", "warp_instructions",
    "l1_hit", "l2_hit", "dram_bytes", "outputs",
)  # fmt: skip
OBJECTIVES = {"time": "time_us", "bytes": "dram_bytes"}


MAX_TIE = 0.01
"""Relative difference of the objective up to which choices are tied: the model does not resolve it."""


class SweepTable(list[dict[str, Any]]):
    """Rows with COLUMNS, one per launch and configuration; accepted by `pandas.DataFrame`.

    choices: label of each row. refused: invalid configurations with reasons. explanations: text of each row. agreements: of
    the outputs of each row with those of the launch as given; column "outputs" has the reason.
    """

    def __init__(self, objective: str = "time") -> None:
        super().__init__()
        self.objective = objective
        self.choices: list[str] = []
        self.refused: list[str] = []
        self.explanations: list[str] = []
        self.agreements: list[Agreement] = []

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS

    def column(self, name: str) -> list[Any]:
        """Return the values of a column. Raises LaunchError for an unknown one."""
        one_of("column", name, COLUMNS)
        return [row[name] for row in self]

    def sums(self) -> dict[tuple[str, str], dict[str, float]]:
        """Return the objective of each choice by kernel and device, summed over launches."""
        totals: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for row, choice in zip(self, self.choices, strict=True):
            by_choice = totals[row["kernel"], row["device"]]
            by_choice[choice] = by_choice.get(choice, 0.0) + row[OBJECTIVES[self.objective]]
        return dict(totals)

    def candidates(self) -> dict[tuple[str, str], dict[str, float]]:
        """Return `sums` without choices that leave work out: those with other outputs, and those without one of the launches."""
        launches: dict[tuple[str, str], set[int]] = defaultdict(set)
        complete: dict[tuple[str, str, str], set[int]] = defaultdict(set)
        for row, choice, agreement in zip(self, self.choices, self.agreements, strict=True):
            launches[row["kernel"], row["device"]].add(row["launch"])
            if agreement is not Agreement.differ:
                complete[row["kernel"], row["device"], choice].add(row["launch"])
        return {
            key: {choice: total for choice, total in by_choice.items() if complete[(*key, choice)] == launches[key]}
            for key, by_choice in self.sums().items()
        }

    def best(self) -> dict[tuple[str, str], tuple[str, float]]:
        """Return the best of `candidates` by kernel and device, and its relative margin over the next, 0 if there is none.

        A kernel without candidates on a device is absent.
        """
        result = {}
        for key, by_choice in self.candidates().items():
            if not by_choice:
                continue
            best_choice, *rest = sorted(by_choice, key=lambda choice: by_choice[choice])
            margin = 1 - by_choice[best_choice] / by_choice[rest[0]] if rest and by_choice[rest[0]] else 0.0
            result[key] = (best_choice, margin)
        return result

    def ties(self) -> dict[tuple[str, str], list[str]]:
        """Return the choices within MAX_TIE of the best by kernel and device, the best first: one if there is no tie."""
        return {
            key: sorted((c for c in by_choice if by_choice[c] * (1 - MAX_TIE) <= least), key=lambda c: by_choice[c])
            for key, by_choice in self.candidates().items()
            if by_choice
            for least in [min(by_choice.values())]
        }

    def outputs(self, kernel: str, device: str, choice: str) -> list[str]:
        """Return the distinct values of column "outputs" of a choice, over its launches."""
        key, rows = (kernel, device, choice), zip(self, self.choices, strict=True)
        return list(dict.fromkeys(row["outputs"] for row, of in rows if (row["kernel"], row["device"], of) == key))

    def csv(self) -> str:
        """Return comma-separated values with a header."""
        into = io.StringIO()
        writer = csv.writer(into, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in self:
            writer.writerow([csv_cell(_flat(row[name])) for name in COLUMNS])
        return into.getvalue()

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks."""
        head = "".join(f"<th>{name}</th>" for name in COLUMNS)
        rows = "".join(f"<tr>{''.join(f'<td>{html(_flat(row[n]))}</td>' for n in COLUMNS)}</tr>" for row in self)
        return f"<table><tr>{head}</tr>{rows}</table>"


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={one}" for name, one in value.items())
    return "x".join(map(str, value)) if isinstance(value, list) else str(value)
