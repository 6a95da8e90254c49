"""MkDocs hooks: location of the package, lists of parameters from docstrings, inclusion of source files, and the pages of the
variants."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import griffe
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File
from simtbed.kernels import FAMILIES
from simtbed.reports.explanation import page

ROOT = Path(__file__).parents[1]
SOURCE = re.compile(r"^<!-- source of (\S+\.py) -->$", re.MULTILINE)
_NAMED = re.compile(r"^((?:\w+, )*\w+): (?=\S)", re.MULTILINE)


@event_priority(100)  # before mkdocstrings reads its paths
def on_config(config: Any) -> Any:
    """Add a search path with a link from `simtbed` to emulator/: the names of package and folder differ."""
    folder = Path(tempfile.mkdtemp(prefix="simtbed-docs-"))
    (folder / "simtbed").symlink_to(ROOT / "emulator", target_is_directory=True)
    handlers = config.plugins["mkdocstrings"].config.handlers
    handlers["python"]["paths"] = [str(folder)]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each family: the text of `simtbed explain` of its variants."""
    for family in FAMILIES.values():
        files.append(File.generated(config, f"variants/{family.name}.md", content=page(family)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each mark `<!-- source of FILE.py -->` by the file."""
    return SOURCE.sub(lambda mark: f"```python\n{(ROOT / mark[1]).read_text(encoding='utf-8')}```", markdown)


class ParameterLists(griffe.Extension):
    """Convert `name: text` of a parameter or a field in a docstring to a list item."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            parameters = obj.parameters if isinstance(obj, griffe.Function) else ()
            obj.docstring.value = _items(obj.docstring.value, {*obj.members, *(p.name for p in parameters)})


def _items(text: str, names: set[str]) -> str:
    """Return the Markdown of a docstring. An item starts a line, or follows a sentence and starts with one of `names`."""

    def separate(match: re.Match[str]) -> str:
        return f".\n{match[2]}" if names.issuperset(match[2].split(", ")) else match[0]

    lines = re.sub(r"([.;]) ((?:\w+, )*\w+)(?=: \S)", separate, text)
    return "\n\n".join(_NAMED.sub(r"\n- **\1**: ", paragraph) for paragraph in lines.split("\n\n"))
