"""`simtbed list`: kernel families with their variants, and devices."""

from simtbed.kernels import FAMILIES
from simtbed.machine.device import DEVICES

from .. import tables
from ..printing import print_text
from .options import Json
from .parameters import command

COLUMNS = ("family", "variant", "description")
OURS = "ours"
"""The `paper` of variants without a paper."""


@command
def list(json: Json = False) -> int:
    """List the kernel families, their variants by paper, and the devices.

    \b
    simtbed list
    simtbed list --json
    """
    variants = [
        {"family": f.name, "variant": v.name, "description": v.description, "paper": v.paper}
        for f in FAMILIES.values()
        for v in f.variants.values()
    ]
    device_rows = [
        {
            "device": d.name,
            "compute capability": ".".join(map(str, d.compute_capability)),
            "SMs": d.sms,
            "clock MHz": d.clock,
            "bandwidth GB/s": round(d.bandwidth),
        }
        for d in DEVICES.values()
    ]
    if json:
        print_text(tables.as_json({"variants": variants, "devices": device_rows}))
        return 0
    by_paper = sorted(variants, key=lambda row: row["paper"] == OURS)  # stable: variants without a paper last
    sections = []
    for paper in dict.fromkeys(row["paper"] for row in by_paper):
        rows = [[row[name] for name in COLUMNS] for row in by_paper if row["paper"] == paper]
        sections.append(f"{'Ours' if paper == OURS else paper}\n{tables.table(COLUMNS, rows, left=3)}")
    sections.append(tables.table([*device_rows[0]], [[*row.values()] for row in device_rows]))
    print_text("\n\n".join(sections))
    return 0
