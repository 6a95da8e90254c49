"""Functions defined by source text, registered in `linecache` for the front end."""

import ast
import linecache
import sys
import textwrap
from typing import Any

from ..errors import LaunchError
from ..source_text import parsed

CALLER = 3
"""Frames from `function_of` to the user's call of `kernel` or `device`."""


def function_of(text: str, word: str) -> Any:
    """Execute `text` with the names of the caller of `word`, and return its last function.

    Raises LaunchError if the text is not Python or defines no function.
    """
    from hashlib import sha256  # late: files with kernels do not need it

    text = textwrap.dedent(text)
    file = f"<{word} {sha256(text.encode()).hexdigest()[:8]}>"
    try:
        tree = parsed(text, file)
    except SyntaxError as error:
        raise LaunchError(f"st.{word}(source=...), line {error.lineno}: {error.msg}") from None
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if not names:
        raise LaunchError(f"st.{word}(source=...) takes the text of a function: def name(...): ...")
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    caller = sys._getframe(CALLER - 1)
    space = {**caller.f_globals, **caller.f_locals}
    exec(compile(text, file, "exec"), space)  # a compiled tree has a lower limit of depth
    return space[names[-1]]
