"""`simtbed new`: a project template with a kernel, its oracle, its test and its workflow."""

import json
import keyword
import os
import re
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files as resources
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated

from simtbed import SimtbedError, __version__
from simtbed.escaping import printable
from simtbed.kernels import files

from ..printing import print_message, print_text
from .parameters import Argument, command

FILES = {
    "kernel.py.in": "$name.py", "oracle.py.in": "oracle.py", "test.py.in": "test_$name.py",
    "requirements.txt.in": "requirements.txt", "gitignore.in": ".gitignore", "README.md.in": "README.md",
    "workflow.yml.in": ".github/workflows/test.yml",
}  # fmt: skip
"""Templates and the paths of their files."""


def requirement() -> str:
    """Return the line of a requirements file that installs simtbed from the place of this installation.

    pip records this place in `direct_url.json` (PEP 610), unless it is an index.
    """
    try:
        text = distribution("simtbed").read_text("direct_url.json")
    except PackageNotFoundError:
        text = None
    if text is None:
        return f"simtbed=={__version__}"
    place = json.loads(text)
    if "vcs_info" in place:
        return f"simtbed @ {place['vcs_info']['vcs']}+{place['url']}@{place['vcs_info']['commit_id']}"
    return f"simtbed @ {place['url']}"


@command
def new(
    folder: Annotated[Path, Argument(metavar="NAME", help="The folder to create; its name is the name of the kernel.")],
) -> int:
    """Create a project with a kernel, its oracle, its test and its workflow.

    The test passes. requirements.txt installs simtbed from the place that this simtbed was installed from.

    \b
    simtbed new smooth
    cd smooth && python -m pytest
    """
    name = folder.name
    if not name.isidentifier() or keyword.iskeyword(name):
        raise SimtbedError(f"{name!r} cannot be the name of a kernel: expected letters, digits and _")
    texts = {file: resources("simtbed.reports.project").joinpath(file).read_text(encoding="utf-8") for file in FILES}
    if name in re.findall(r"\w+", " ".join(text for file, text in texts.items() if file.endswith(".py.in"))):
        raise SimtbedError(f"{name!r} cannot be the name of a kernel: the files of the project use it")
    if find_spec(name):
        raise SimtbedError(f"{name!r} cannot be the name of a kernel: its file would shadow a module")
    if os.path.lexists(folder):
        raise SimtbedError(f"{folder}: exists already")
    paths = {template: Template(target).substitute(name=name) for template, target in FILES.items()}
    with files.new_folder(folder) as unfinished:
        for template, path in paths.items():
            (unfinished / path).parent.mkdir(parents=True, exist_ok=True)
            files.write(unfinished / path, [Template(texts[template]).substitute(name=name, requirement=requirement())])
    for path in paths.values():
        print_text(printable(folder / path))
    if " @ file:" in requirement():
        message = (
            f"simtbed is installed from a folder: write its address into {folder / 'requirements.txt'} for the workflow"
        )
        print_message(f"simtbed: {printable(message)}")
    return 0
