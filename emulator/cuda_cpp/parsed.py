"""A CUDA C++ text after libclang: its kernels, their trees, and the compiler's errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import CompileError, Diagnostic, LaunchError
from ..span import Span
from . import clang
from .header_files import included_files, missing
from .lowering import constant_element, initial_bytes
from .places import SourceText
from .reading import Reader
from .tree import Function


class ParsedText:
    """The translation unit of a text. Raises UnavailableError without libclang."""

    def __init__(self, source: SourceText, options: Sequence[str], instances: Sequence[str]) -> None:
        self.source, self.instances = source, instances
        files, names = included_files(source.text, source.folder, options)
        self._missing = missing(source.text, names)
        self._unit = clang.parse(source.text, options, instances, source.folder)
        for entry in self._unit.get_includes():
            name = entry.include.name
            if name not in files and not name.startswith(f"{clang.ROOT}/include/"):
                span, message = (
                    self._span(entry.location),
                    "an #include of a macro is not supported: write the file's name",
                )
                raise CompileError([Diagnostic("compile", message, span)])
        self._reader = Reader(source)
        self.kernels, self._templates = _kernels(self._reader, self._unit, instances)

    def function(self, name: str) -> Function:
        """Return the tree of a kernel. Raises CompileError if it is not supported, LaunchError for an unknown name."""
        if name not in self.kernels:
            if results := self._errors(None):
                raise CompileError(results)
            if name in self._templates:
                raise LaunchError(f'{name} is a template: name its instances, such as instances=("{name}<float>",)')
            raise LaunchError(f"the text has no kernel {name}; it has {', '.join(self.kernels) or 'none'}")
        if results := self._errors(_call_closure(self._reader.kinds, self.kernels[name])):
            raise CompileError(results)
        return self._reader.function(self.kernels[name])

    def initial(self, name: str) -> np.ndarray[Any, Any]:
        """Return the initial contents of a `__constant__` or `__device__` variable, flat. Raises LaunchError for other names."""
        kinds = self._reader.kinds
        for cursor in self._unit.cursor.walk_preorder():
            if cursor.kind == kinds.VAR_DECL and cursor.spelling == name:
                variable = self._reader.variable(cursor)
                if variable.place in ("constant", "device"):
                    return np.frombuffer(initial_bytes(variable), constant_element(variable.type).dtype)
        raise LaunchError(f"the text has no __constant__ or __device__ variable {name}")

    def _span(self, location: Any) -> Span:
        return self.source.span(_Extent(location, location))

    def _errors(self, functions: Sequence[Any] | None) -> list[Diagnostic]:
        """Return the compiler's errors inside these functions, or all: errors in the host's code of a file do not matter."""
        ranges = None
        if functions is not None:
            extents = [function.extent for function in functions if function.extent.start.file is not None]
            ranges = [(entry.start.file.name, entry.start.offset, entry.end.offset) for entry in extents]
        results = []
        for entry in self._unit.diagnostics:
            file, offset = (entry.location.file.name if entry.location.file else ""), entry.location.offset
            inside = ranges is None or any(name == file and low <= offset <= high for name, low, high in ranges)
            if inside and (entry.severity >= _ERROR or entry.option == _UNINITIALISED):
                instance = entry.location.line - self.source.text.count("\n") - 2  # each in a line behind the text
                requested = f"instance {self.instances[instance]}: " if file == clang.SOURCE and instance >= 0 else ""
                results.append(Diagnostic("compile", requested + _message(entry), self._span(entry.location)))
        if results and self._missing:
            hint = (
                f'{results[0].message}; not found: {", ".join(self._missing)}: give their folder, options=("-Ifolder",)'
            )
            results[0] = replace(results[0], message=hint)
        return results


_ERROR, _UNINITIALISED = 3, "-Wuninitialized"


def _message(diagnostic: Any) -> str:
    """Return the message of the compiler in this project's words."""
    text = str(diagnostic.spelling)
    if diagnostic.option == _UNINITIALISED:
        return f"{text.removeprefix('variable ').partition(' is ')[0]} is read before it is assigned".replace("'", "")
    if "cudaLaunchDevice" in text:
        return "launches of kernels in kernels are not supported"
    return text


@dataclass
class _Extent:
    start: Any
    end: Any


def _kernels(reader: Reader, unit: Any, instances: Sequence[str]) -> tuple[dict[str, Any], set[str]]:
    """Return the cursors of the kernels of a text, instances of templates as they were requested, and the names of templates."""
    kinds, results, templates = reader.kinds, dict[str, Any](), set[str]()

    def visit(cursor: Any) -> None:
        for child in cursor.get_children():
            if child.location.file is None or child.location.file.name.startswith(f"{clang.ROOT}/include/"):
                continue
            if child.kind in (kinds.NAMESPACE, kinds.LINKAGE_SPEC, kinds.UNEXPOSED_DECL):
                visit(child)
            elif child.kind == kinds.FUNCTION_DECL and child.is_definition() and _is_kernel(kinds, child):
                results[child.spelling] = child
            elif child.kind == kinds.FUNCTION_TEMPLATE and _is_kernel(kinds, child):
                templates.add(child.spelling)
            elif child.kind == kinds.VAR_DECL and child.spelling.startswith("simtbed_instance_"):
                names = (entry.referenced for entry in child.walk_preorder() if entry.kind == kinds.DECL_REF_EXPR)
                function = next(
                    (entry for entry in names if entry is not None and entry.kind == kinds.FUNCTION_DECL), None
                )
                if function is not None and function.is_definition():
                    results[instances[int(child.spelling.rpartition("_")[2])]] = function

    visit(unit.cursor)
    return results, templates


def _is_kernel(kinds: Any, cursor: Any) -> bool:
    return any(child.kind == kinds.CUDAGLOBAL_ATTR for child in cursor.get_children())


def _call_closure(kinds: Any, kernel: Any) -> list[Any]:
    """Return a kernel and the functions that it calls."""
    results, pending = {kernel.hash: kernel}, [kernel]
    while pending:
        for entry in pending.pop().walk_preorder():
            called = entry.referenced if entry.kind == kinds.CALL_EXPR else None
            definition = None if called is None or called.kind == kinds.VAR_DECL else called.get_definition()
            if called is not None and definition is None:  # errors prevent an instance of a template
                definition = clang.template_of(called)
            if definition is not None and definition.hash not in results:
                results[definition.hash] = definition
                pending.append(definition)
    return list(results.values())
