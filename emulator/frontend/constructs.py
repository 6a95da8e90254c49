"""Compile errors for unsupported Python constructs and for numbers used as conditions."""

import ast
import re

from ..language.types import F32
from ..language.types import Value as ValueType
from ..span import Span
from .values import SourceError, written


def not_a_bool(message: str, span: Span, test: str = "!=") -> SourceError:
    """Return the error for a number where a bool is expected."""
    plain = re.fullmatch(r"[\w.\[\]()]{1,30}", span.text)
    return SourceError(span, message, f"write {span.text if plain else '(...)'} {test} 0")


def construct_name(node: ast.AST) -> str:
    """Return a construct's name for a message."""
    return _CONSTRUCTS.get(type(node), (f"`{type(node).__name__}`", ""))[0]


def refused(node: ast.AST, span: Span, element: ValueType = F32) -> SourceError:
    """Return the error for an unsupported construct. element: element type for the hint."""
    name, advice = _CONSTRUCTS.get(type(node), (f"`{type(node).__name__}`", "write it with plain statements"))
    advice = advice.format(element=written(element))
    return SourceError(span, f"{name} is not in the kernel language", advice)


_ARRAYS = "write st.local({element}, n), or st.registers({element}, n) where indices are constants"
_ACCUMULATE = "write a for loop, with a variable that accumulates"
_CONSTRUCTS: dict[type, tuple[str, str]] = {
    ast.MatMult: ("`@`", "write a loop over products"),
    ast.Is: ("`is`", "write == or !="), ast.IsNot: ("`is not`", "write == or !="),
    ast.List: ("a list", _ARRAYS), ast.Dict: ("a dict", _ARRAYS), ast.Set: ("a set", _ARRAYS),
    ast.ListComp: ("a list comprehension", _ACCUMULATE), ast.GeneratorExp: ("a generator expression", _ACCUMULATE),
    ast.Lambda: ("a lambda", "define a function with def, marked @st.device"),
    ast.JoinedStr: ("an f-string", "write it only in print(...)"), ast.NamedExpr: ("`:=`", "write it as a statement"),
    ast.Starred: ("`*`", "write the values one by one"), ast.Slice: ("a slice", "write a loop over its indices"),
    ast.Await: ("`await`", "write st.sync(), or wait in a loop"), ast.Yield: ("`yield`", "store the value in an array"),
    ast.Constant: ("this constant", "write a number"),
}  # fmt: skip
