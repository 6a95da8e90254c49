"""Small listings in nvdisasm's format, for tests of parsing."""

from simtbed.engines.cuda.sass import Instruction, parse

HEAD = """\t.target\tsm_90

//--------------------- .text.{kernel}           --------------------------
\t.section\t.text.{kernel},"ax",@progbits
\t.align\t128
{kernel}:
.text.{kernel}:
"""


def listing(kernel: str, code: str) -> str:
    """Return a section of code. Lines are `LINE | INSTRUCTION`, or `label:`; LINE may be empty."""
    rows, offset = [], 0
    for row in code.strip().splitlines():
        row = row.strip()
        if row.endswith(":"):
            rows.append(row)
            continue
        line, _, text = row.partition("|")
        if line.strip():
            rows.append(f'\t//## File "/some/where/source.py", line {line.strip()}')
        rows.append(f"        /*{offset:04x}*/                   {text.strip()} ;")
        offset += 16
    return (
        HEAD.format(kernel=kernel)
        + "\n".join(rows)
        + '\n\t.section\t.text.other,"ax",@progbits\n        /*0000*/ NOP ;\n'
    )


def instructions(code: str) -> tuple[Instruction, ...]:
    """Return the instructions of such a listing."""
    return parse(listing("kernel", code), "kernel")
