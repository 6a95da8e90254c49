"""SVG pictures of a profile: the lanes of an access over sectors or banks, and iterations of lanes.

Colours are classes of the page's style sheet. Every cell has its number, so that colour is not the only cue.
"""

from collections.abc import Sequence

import numpy as np

from ...escaping import html
from ...language.intrinsics import WARP_SIZE
from ...machine.device import Device
from ..costs import Place
from ..samples import Table, lanes_by_iterations

CELL = 22
"""Pixels of a cell."""
MOST_ROWS = 32


def access(place: Place, table: Table, row: int, device: Device) -> str:
    """Draw the first execution with cost `row`: the sectors or banks that its lanes access."""
    sample = table[row]
    lanes = [lane for lane in range(WARP_SIZE) if int(sample["mask"]) >> lane & 1]
    elements = {lane: int(sample["index"][lane]) for lane in lanes}
    if place.kind.startswith("shared"):
        return _banks(elements, place.size, device)
    return _sectors(elements, place.size, device.load_sector if place.kind == "global_load" else device.sector)


def _sectors(elements: dict[int, int], size: int, sector: int) -> str:
    """Draw a column for size sector, in order of address, with a cell for size element and its lanes."""
    a_sector = max(1, sector // size)
    by_element: dict[int, list[int]] = {}
    for lane, element in elements.items():
        by_element.setdefault(element, []).append(lane)
    columns = sorted({element // a_sector for element in by_element})
    cells = []
    for x, number in enumerate(columns):
        for y in range(a_sector):
            lanes = by_element.get(number * a_sector + y, [])
            title = f"element {number * a_sector + y}: " + (f"lanes {_ranges(lanes)}" if lanes else "not accessed")
            cells.append(_cell(x, y, _few(lanes), "used" if lanes else "idle", title))
    labels = [_label(x, a_sector, str(x + 1)) for x in range(len(columns))]
    return _svg(len(columns), a_sector + 1, [*cells, *labels], f"{len(elements)} lanes touch {len(columns)} sectors")


def _banks(elements: dict[int, int], size: int, device: Device) -> str:
    """Draw a column for size bank, with a cell for size word and its lanes."""
    words: dict[int, list[int]] = {}
    width = device.bank_width
    for lane, element in elements.items():
        for word in range(element * size // width, max(element * size // width + 1, -(-(element + 1) * size // width))):
            words.setdefault(word, []).append(lane)
    columns: list[list[int]] = [[] for _ in range(device.banks)]
    for word in sorted(words):
        columns[word % device.banks].append(word)
    height = min(MOST_ROWS, max(len(column) for column in columns))
    cells = []
    for bank, column in enumerate(columns):
        for y, word in enumerate(column[:height]):
            title = f"bank {bank}, word {word}: lanes {_ranges(words[word])}"
            kind = "used" if len(column) == 1 else "conflict"
            cells.append(_cell(bank, height - 1 - y, _few(words[word]), kind, title))
        if not column:
            cells.append(_cell(bank, height - 1, "", "idle", f"bank {bank}: not accessed"))
    labels = [_label(bank, height, str(bank)) for bank in range(device.banks)]
    most = max(len(column) for column in columns)
    return _svg(device.banks, height + 1, [*cells, *labels], f"up to {most} words in one bank")


def iterations(table: Table) -> str:
    """Draw a bar chart of lanes by their iterations of a loop."""
    groups = lanes_by_iterations(table)
    bars = _merge_groups(groups, 24)
    most = max((lanes for _, _, lanes in bars), default=1)
    height, shapes = 120, []
    for x, (low, high, lanes) in enumerate(bars):
        tall = max(1, round(100 * lanes / most))
        name = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        shapes.append(
            f'<g><title>{name} iterations: {lanes:,} lanes</title><rect class="used" x="{x * 30 + 2}" '
            f'y="{height - tall}" width="26" height="{tall}"/>'
            f'<text x="{x * 30 + 15}" y="{height + 14}">{short(low)}</text>'
            f'<text x="{x * 30 + 15}" y="{height - tall - 3}">{short(lanes)}</text></g>'
        )
    return svg(30 * max(1, len(bars)), height + 20, shapes, "lanes by iterations", top=16)


def _merge_groups(groups: Sequence[tuple[int, int, int]], most: int) -> list[tuple[int, int, int]]:
    """Merge neighbouring groups until there are at most `most`."""
    size = -(-len(groups) // most)
    shapes = [groups[at : at + size] for at in range(0, len(groups), max(size, 1))]
    return [(part[0][0], part[-1][1], sum(lanes for _, _, lanes in part)) for part in shapes]


# ------------------------------------------------------------------ pieces
def _cell(x: int, y: int, text: str, kind: str, title: str) -> str:
    label = f'<text x="{x * CELL + CELL / 2}" y="{y * CELL + CELL / 2 + 3}">{text}</text>' if text else ""
    return (
        f'<g><title>{html(title)}</title><rect class="{kind}" x="{x * CELL + 1}" y="{y * CELL + 1}" '
        f'width="{CELL - 2}" height="{CELL - 2}"/>{label}</g>'
    )


def _label(x: int, y: int, text: str) -> str:
    return f'<text class="axis" x="{x * CELL + CELL / 2}" y="{y * CELL + CELL / 2 + 3}">{text}</text>'


def _svg(columns: int, rows: int, shapes: Sequence[str], title: str) -> str:
    return svg(columns * CELL, rows * CELL, shapes, title)


def svg(width: float, height: float, shapes: Sequence[str], title: str, top: int = 0) -> str:
    """Return a picture. width, height: pixels. top: pixels above 0."""
    return (
        f'<svg role="img" aria-label="{html(title)}" viewBox="0 {-top} {width} {height + top}" width="{width}" '
        f'height="{height + top}">{"".join(shapes)}</svg>'
    )


def _few(lanes: Sequence[int]) -> str:
    """Return a lane's number, or the number of lanes."""
    return str(lanes[0]) if len(lanes) == 1 else f"{len(lanes)}x" if lanes else ""


def _ranges(lanes: Sequence[int]) -> str:
    """Return lanes as ranges: 0-3, 8."""
    starts = np.flatnonzero(np.diff(lanes, prepend=-2) != 1)
    ends = [*(starts[1:] - 1), len(lanes) - 1]
    return ", ".join(
        str(lanes[a]) if a == b else f"{lanes[a]}-{lanes[b]}" for a, b in zip(starts.tolist(), ends, strict=True)
    )


def short(number: int) -> str:
    """Format 1,234 as 1.2k."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return str(number)
