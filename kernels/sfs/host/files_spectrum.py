"""Writers of the spectrum over all sites: a TSV table and a bar chart as SVG."""

from __future__ import annotations

from collections.abc import Iterator

from .problem import Floats


def lines(spectrum: Floats) -> Iterator[str]:
    """Yield the spectrum as TSV: number of minor alleles, number of sites, share."""
    yield "minor_alleles\tsites\tshare\n"
    whole = spectrum.sum() or 1.0
    yield from (f"{j}\t{sites:.10g}\t{sites / whole:.10g}\n" for j, sites in enumerate(spectrum.tolist()))


WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 900, 420, 80, 50, 40
"""Size of the chart and its margins, in pixels."""


def picture(spectrum: Floats, title: str) -> str:
    """Return a bar chart of the sites with 1 to 2N - 1 minor alleles, as SVG. The title states the counts of sites
    without variation: their bars would be much larger."""
    shown = spectrum[1:-1]
    top = float(shown.max()) if len(shown) and shown.max() > 0 else 1.0
    step, height = (WIDTH - LEFT - 20) / max(len(shown), 1), HEIGHT - BOTTOM - TOP
    bars = "".join(
        f'<rect x="{LEFT + at * step:.2f}" y="{TOP + height * (1 - value / top):.2f}" width="{max(step * 0.9, 0.3):.2f}" '
        f'height="{height * value / top:.2f}"><title>{at + 1}: {value:.6g}</title></rect>\n'
        for at, value in enumerate(shown.tolist())
    )
    levels = "".join(
        f'<text x="{LEFT - 8}" y="{TOP + height * (1 - part) + 4:.0f}" text-anchor="end">{top * part:.3g}</text>\n'
        for part in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    stride = max(1, -(-len(shown) // 16))
    counts = "".join(
        f'<text x="{LEFT + (at + 0.45) * step:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{at + 1}</text>\n'
        for at in range(0, len(shown), stride)
    )
    extremes = f"none {spectrum[0]:.6g}, all {spectrum[-1]:.6g} (not drawn)"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12">\n<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n'
        f'<text x="{LEFT}" y="22" font-size="14">{_escaped(title)}; sites with minor alleles: {extremes}</text>\n'
        f'<g fill="#3b6ea5">\n{bars}</g>\n{levels}{counts}'
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">minor alleles</text>\n'
        f'<text x="16" y="{TOP + height / 2}" text-anchor="middle" transform="rotate(-90 16 {TOP + height / 2})">'
        "sites</text>\n</svg>\n"
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
