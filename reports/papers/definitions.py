"""Definitions of the papers: a TOML file each, with items, claims, printed figures and tolerances.

A claim lists comparisons of named values with numbers of the paper. A formula of the paper's package computes the values.
"""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from simtbed import SimtbedError
from simtbed.documents import require, text_of, toml_of
from simtbed.kernels.family import load

from .claims import MAX_TOLERANCE, PRINTED, Claim, Comparison, Value
from .paper import Figures, Item, Paper, Parameter, Setting, Shown, Table

PAPERS = ("ren2018", "gpupairhmm2024", "ren2019", "mangal2014", "lu2012")
"""Folders of this package, each with a `paper.toml`."""
Content = Mapping[str, Any]
T = TypeVar("T")
CAVEAT = (
    "The time model simulates one fully occupied SM with its share of L2 and of device memory bandwidth. The interval is that of the "
    "model, which is not validated on this GPU."
)
"""The text of {caveat} in all papers."""


@cache
def content_of(name: str) -> Content:
    """Return the content of the file of a paper. Raises ValueError for an invalid file."""
    from .schema import Definition  # late: msgspec

    content = toml_of(text_of(Path(__file__).with_name(name) / "paper.toml"))
    require(content, Definition)
    return content


def printed(name: str) -> Content:
    """Return the printed figures of a paper that formulas read."""
    figures: Content = content_of(name).get("printed", {})
    return figures


def find(name: str) -> Paper:
    """Return a paper by its definition. Raises SimtbedError for an unknown name."""
    if name not in PAPERS:
        raise SimtbedError(f"there is no paper {name!r}; expected one of {', '.join(PAPERS)}")
    content = content_of(name)
    references = {key: load(_reference(name, content[key])) for key in ("benchmarks",) if key in content}
    tolerances = content.get("tolerances", {})
    return Paper(
        name=name,
        title=content["title"],
        citation=load(content["citation"]),
        device=content["device"],
        parameters=[Parameter(key, **value) for key, value in content.get("parameters", {}).items()],
        items=[Item(item["name"], item["caption"], partial(_show, name, item, content)) for item in content["item"]],
        tolerances={key: (value["within"], value["source"]) for key, value in tolerances.items()},
        sizes=content.get("sizes", ()),
        **references,
    )


def _reference(name: str, formula: str) -> str:
    module, _, function = formula.partition(":")
    return f"{__package__}.{name}.{module}:{function}"


def _show(name: str, item: Content, paper: Content, setting: Setting) -> Shown:
    """Evaluate the formula of an item, and its claims."""
    formula = item.get("formula")
    figures: Figures = load(_reference(name, formula))(setting) if formula else Figures()
    texts, tolerances = {"caveat": CAVEAT, **paper.get("texts", {}), **figures.texts}, paper.get("tolerances", {})

    def text(content: Content, key: str) -> str:
        return str(content.get(key, "")).format(**texts)

    claims = [
        Claim(
            text(claim, "text"),
            [
                comparison
                for compared in claim.get("compare", ())
                for comparison in comparisons(compared, figures, tolerances)
            ],
            claim.get("main", False),
            text(claim, "remark"),
            claim.get("place", ""),
        )
        for claim in item["claim"]
    ]
    tables = [_table(table) for table in item.get("table", ())]
    return Shown(claims, text(item, "reason"), [*tables, *figures.tables], figures.charts, text(item, "note"))


def _table(content: Content) -> Table:
    """Return a table of printed figures; "" is no value."""
    cells = (zip(content["columns"], row, strict=True) for row in content["rows"])
    return Table(content["title"], [{column: value for column, value in row if value != ""} for row in cells])


def comparisons(content: Content, figures: Figures, tolerances: Content) -> list[Comparison]:
    """Return the comparisons of one entry: of each value of a name, or of printed numbers."""
    quantity, tolerance = str(content.get("quantity", content.get("value", ""))), content.get("within", "")
    margin = tolerances[tolerance]["within"] if isinstance(tolerance, str) and tolerance else tolerance or 0.0
    name = tolerance if isinstance(tolerance, str) else f"± {tolerance:g}"
    compared = []
    for value in _values(content, figures):
        low, high, strict = _interval(content, value.label, margin)
        label = f"{quantity.format(**figures.texts)}{value.label and f', {value.label}'}"
        compared.append(Comparison(value.origin, label, value.value, low, high, strict, value.interval, name))
    return compared


def _values(content: Content, figures: Figures) -> Sequence[Value]:
    if "quotient" in content:
        above, below = content["quotient"]
        return [Value(PRINTED, above / below)]
    if "sum" in content:
        return [Value(PRINTED, sum(content["sum"]))]
    return figures.values_of(content["value"])


def _interval(content: Content, label: str, margin: float) -> tuple[float, float, bool]:
    """Return the expected interval of a value with a label: its ends, and whether they are excluded."""

    def number(key: str) -> float:
        expected = content[key]
        return float(expected[label] if isinstance(expected, dict) else expected)

    if "near" in content:
        if not 0 < margin <= MAX_TOLERANCE:
            raise ValueError(f"expected a tolerance above 0 and at most {MAX_TOLERANCE}, got {margin}")
        expected = number("near")
        return expected - abs(expected) * margin, expected + abs(expected) * margin, False
    if "exactly" in content:
        return number("exactly"), number("exactly"), False
    key = next(key for key in ("more_than", "less_than", "at_least", "at_most") if key in content)
    if key in ("more_than", "at_least"):
        return number(key) - margin * abs(number(key)), float("inf"), key == "more_than"
    return float("-inf"), number(key) + margin * abs(number(key)), key == "less_than"
