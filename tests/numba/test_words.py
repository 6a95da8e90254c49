"""The words of findings in Numba's kernels."""

import ast
import re
from pathlib import Path

import simtbed
from simtbed.numba.kernel import WORDS

SANITIZER = Path(simtbed.__file__).parent / "sanitizer"


def test_each_word_of_a_finding_is_known_to_numba() -> None:
    """Kernels of Numba have no asynchronous copies, and no products of warpgroups."""
    texts = [
        node.value
        for path in SANITIZER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    words = {
        word
        for text in texts
        for word in re.findall(r"\bst\.(?!async_wait|wgmma|mbarrier|bulk_|fence_async)\w+\([^)]*\)", text)
    }
    assert "st.syncwarp()" in words and "st.volatile_store()" in words
    assert not [word for word in words if not any(known.endswith(word) for known in WORDS)]
