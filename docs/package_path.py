"""Where mkdocstrings finds the package `simtbed`, whose folder in the repository is called emulator/."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority

ROOT = Path(__file__).parents[1]


@event_priority(100)  # before mkdocstrings reads its paths
def on_config(config: Any) -> Any:
    """Add a folder in which `simtbed` is a link to emulator/ to the paths that mkdocstrings searches."""
    folder = Path(tempfile.mkdtemp(prefix="simtbed-docs-"))
    (folder / "simtbed").symlink_to(ROOT / "emulator", target_is_directory=True)
    handlers = config.plugins["mkdocstrings"].config.handlers
    handlers.setdefault("python", {})["paths"] = [str(folder)]
    return config
