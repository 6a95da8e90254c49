"""Objects as constants of generated code.

Python compiles only its own literals. The syntax tree has a text in the place of each object, and the compiled code gets the objects:
the code then refers to NumPy scalars and functions without names that a debugger would show.
"""

import ast
import warnings
from types import CodeType
from typing import Any

_MARK = "\0simtbed"


class Constants:
    """The objects of one code object."""

    def __init__(self) -> None:
        self._objects: dict[str, Any] = {}
        self._scalars: dict[tuple[type, bytes], ast.Constant] = {}

    def node(self, value: Any) -> ast.Constant:
        """Return the node of an object."""
        mark = f"{_MARK}{len(self._objects)}"
        self._objects[mark] = value
        return ast.Constant(mark)

    def scalar(self, value: Any) -> ast.Constant:
        """Return the node of a NumPy scalar."""
        key = type(value), value.tobytes()
        if key not in self._scalars:
            self._scalars[key] = self.node(value)
        return ast.Constant(self._scalars[key].value)

    def value(self, node: ast.Constant) -> Any:
        """Return the object of a node."""
        return self._object(node.value)

    def compiled(self, tree: ast.FunctionDef, file: str) -> CodeType:
        """Return the code of a function with the objects in place of their texts."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of calls of a text
            module = compile(ast.Module([tree], []), file, "exec")
        code = next(constant for constant in module.co_consts if isinstance(constant, CodeType))
        return code.replace(co_consts=tuple(map(self._object, code.co_consts)))

    def _object(self, constant: Any) -> Any:
        if isinstance(constant, tuple):
            return tuple(map(self._object, constant))
        return self._objects.get(constant, constant) if isinstance(constant, str) else constant
