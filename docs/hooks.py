"""How MkDocs reads the package: where `simtbed` is found, how its docstrings name parameters, and files shown on a page."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import griffe
from mkdocs.plugins import event_priority

ROOT = Path(__file__).parents[1]
SOURCE = re.compile(r"^<!-- source of (\S+\.py) -->$", re.MULTILINE)
_NAMED = re.compile(r"^((?:\w+, )*\w+): (?=\S)", re.MULTILINE)


@event_priority(100)  # before mkdocstrings reads its paths
def on_config(config: Any) -> Any:
    """Let mkdocstrings search a folder in which `simtbed` is a link to emulator/, as the package is not called like its folder."""
    folder = Path(tempfile.mkdtemp(prefix="simtbed-docs-"))
    (folder / "simtbed").symlink_to(ROOT / "emulator", target_is_directory=True)
    handlers = config.plugins["mkdocstrings"].config.handlers
    handlers["python"]["paths"] = [str(folder)]
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """In place of a mark `<!-- source of FILE.py -->` the page shows that file."""
    return SOURCE.sub(lambda mark: f"```python\n{(ROOT / mark[1]).read_text(encoding='utf-8')}```", markdown)


class ParameterLists(griffe.Extension):
    """What a docstring says of a parameter or a field, `name: text`, becomes an item of a list."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            parameters = obj.parameters if isinstance(obj, griffe.Function) else ()
            obj.docstring.value = _items(obj.docstring.value, {*obj.members, *(p.name for p in parameters)})


def _items(text: str, names: set[str]) -> str:
    """Markdown of a docstring. An item begins a line, or follows a sentence if it is about one of `names`."""

    def begun(match: re.Match[str]) -> str:
        return f".\n{match[2]}" if names.issuperset(match[2].split(", ")) else match[0]

    lines = re.sub(r"([.;]) ((?:\w+, )*\w+)(?=: \S)", begun, text)
    return "\n\n".join(_NAMED.sub(r"\n- **\1**: ", paragraph) for paragraph in lines.split("\n\n"))
