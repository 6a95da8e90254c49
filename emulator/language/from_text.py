"""A function from its text, which is kept, so that it can be read where no file holds it."""

from __future__ import annotations

import ast
import linecache
import sys
import textwrap
from typing import Any

from ..errors import LaunchError

CALLER = 3
"""Frames from `function_of` up to the user's: that of `kernel` or `device` lies between."""


def function_of(text: str, word: str) -> Any:
    """What the last function of `text` is called by, once the text has run with the names of the place that calls
    `word`. Raises LaunchError where the text is no Python or defines no function."""
    from hashlib import sha256  # late: `import simtbed` needs it for no kernel in a file

    text = textwrap.dedent(text)
    file = f"<{word} {sha256(text.encode()).hexdigest()[:8]}>"
    try:
        tree = ast.parse(text, file)
    except SyntaxError as error:
        raise LaunchError(f"st.{word}(source=...), line {error.lineno}: {error.msg}") from None
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if not names:
        raise LaunchError(f"st.{word}(source=...) takes the text of a function: def name(...): ...")
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    caller = sys._getframe(CALLER - 1)
    space = {**caller.f_globals, **caller.f_locals}
    exec(compile(tree, file, "exec"), space)
    return space[names[-1]]
