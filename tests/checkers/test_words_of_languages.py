"""The words of findings in kernels of other languages: no advice names a function of simtbed."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from simtbed import sanitizer
from simtbed.cuda_cpp.kernel import WORDS as CUDA_CPP
from simtbed.errors import Diagnostic
from simtbed.llvmir.ptx_words import WORDS as PTX
from simtbed.numba.kernel import WORDS as NUMBA
from simtbed.runtime.result import in_words
from simtbed.span import Span
from simtbed.triton.kernel import WORDS as TRITON

FUNCTION = r"\bst\.[a-z]\w*(?=[(. ,:]|$)"
ABSENT = {"st.async_wait", *re.findall(FUNCTION, " ".join(PTX))}
"""Functions without a counterpart in Numba, whose kernels have no PTX."""


def texts() -> Iterator[str]:
    """Yield the parts of messages that name a function of simtbed, from the sources of the checkers."""
    for path in Path(str(sanitizer.__file__)).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        constants = (
            node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in documentation
        )
        yield from (str(node.value) for node in constants if re.search(FUNCTION, str(node.value)))


@pytest.mark.parametrize(
    ("words", "absent"), [(CUDA_CPP, set()), (TRITON, set()), (NUMBA, ABSENT)], ids=["CUDA C++", "Triton", "Numba"]
)
def test_advice_names_no_function_of_simtbed(words: dict[str, str], absent: set[str]) -> None:
    messages = sorted(set(texts()))
    assert len(messages) > 20
    span = Span("kernel", 1, 1, 1, 1)
    finding = Diagnostic("race", "message", span, tuple(f"write to x or {text}" for text in messages))
    (translated,) = in_words([finding], words)
    left = {name for note in translated.notes for name in re.findall(FUNCTION, note)}
    assert left - absent == set()
