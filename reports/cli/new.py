"""`simtbed new`: a small project that works as it is written."""

from __future__ import annotations

import keyword
from importlib.resources import files as resources
from pathlib import Path
from string import Template
from typing import Annotated

from simtbed import SimtbedError
from simtbed.kernels import files

from .parameters import Argument, command

FILES = {
    "kernel.py.in": "$name.py",
    "oracle.py.in": "oracle.py",
    "test.py.in": "test_$name.py",
    "requirements.txt.in": "requirements.txt",
    "README.md.in": "README.md",
    "workflow.yml.in": ".github/workflows/test.yml",
}
"""Each template, and the file that it becomes."""


@command
def new(folder: Annotated[Path, Argument(metavar="NAME", help="The folder to make; its name is the kernel's.")]) -> int:
    """A small project: a kernel, its oracle, its test, its workflow.

    Its test passes as it is written.

    \b
    simtbed new smooth
    cd smooth && python -m pytest
    """
    name = folder.name
    if not name.isidentifier() or keyword.iskeyword(name) or name == "oracle":
        raise SimtbedError(f"{name!r} cannot be the name of a kernel: letters, digits and _ make one")
    if folder.exists():
        raise SimtbedError(f"{folder}: is there already")
    for template, target in FILES.items():
        path = folder / Template(target).substitute(name=name)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = resources("simtbed.reports.project").joinpath(template).read_text(encoding="utf-8")
        files.write(path, [Template(text).substitute(name=name)])
        print(path)
    return 0
