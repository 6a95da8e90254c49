"""A CUDA C++ text after clang: its kernels and variables, and the compiler's errors."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from .. import disk_cache, source_text
from ..errors import CompileError, Diagnostic, LaunchError, SimtbedError
from ..llvmir.debug import DescribedFunction
from ..llvmir.module import Global, Module, Variable
from ..llvmir.text import parse_declarations
from ..span import Span
from . import clang
from .clang import HEADER, ROOT, SOURCE, Error
from .declaration import Declaration, HostParameter
from .header_files import include_folders, included, included_files, missing
from .places import SourceText
from .segments import Segment, segments, without

_MOST_ERRORS = 20
"""Errors that are listed."""
_MOST_CHARACTERS = 400
"""Characters of the compiler's message that are shown."""
_ROUNDS = 12
"""Compilations of a text, each without the erroneous declarations of the one before."""
_KERNEL = re.compile(r"^define [^\n]*\bptx_kernel\b[^\n@]*@(\"[^\"]*\"|[-\w.$]+)\(", re.MULTILINE)
_TEMPLATE = re.compile(r"\btemplate\s*<[^;{}]*?__global__[^;{}(]*?(\w+)\s*\(")
_COMPUTED = re.compile(r"\s*#\s*include\s+[A-Za-z_]")
_ARGUMENTS = re.compile(r"^(@\.args[\w.]*) = [^\n]*?constant \{[^{}]*\} \{([^{}]*)\}", re.MULTILINE)
_NUMBER = re.compile(r"i32 (\d+)")
_CLUSTER = re.compile(r'^(@[\w.]+) = [^\n]*c"simtbed\.cluster\\00"', re.MULTILINE)
_ANNOTATION = re.compile(r'\{ ptr @("[^"]*"|[-\w.$]+), ptr (@[\w.]+), ptr @[\w.]+, i32 \d+, ptr (@[\w.]+) \}')
_REQUEST = "simtbed_instance_"
_ASSERTION = "static assertion failed"


class CompiledModule:
    """LLVM IR of CUDA C++. source: the text with its kernels. text: of the module."""

    def __init__(self, source: SourceText, text: str) -> None:
        self.source, self.text = source, text

    @cached_property
    def module(self) -> Module:
        """The variables and the debug information of the module."""
        return parse_declarations(self.text)

    @cached_property
    def functions(self) -> Mapping[str, DescribedFunction]:
        """The kernels by their symbols, in the order of the module."""
        functions = self.module.debug.functions
        symbols = (match[1].strip('"') for match in _KERNEL.finditer(self.text))
        return {symbol: functions[symbol] for symbol in symbols if symbol in functions}

    @cached_property
    def clusters(self) -> Mapping[str, tuple[int, int, int]]:
        """The blocks of a cluster by axis of kernels with `__cluster_dims__`, by their symbols: annotations of the module."""
        numbers = {match[1]: list(map(int, _NUMBER.findall(match[2]))) for match in _ARGUMENTS.finditer(self.text)}
        texts = {match[1] for match in _CLUSTER.finditer(self.text)}
        clusters = {}
        for symbol, text, arguments in (match.groups() for match in _ANNOTATION.finditer(self.text)):
            if text in texts and arguments in numbers:
                x, y, z = (*numbers[arguments], 1, 1)[:3]
                clusters[symbol.strip('"')] = x, y, z
        return clusters

    def declaration(self, function: DescribedFunction) -> Declaration:
        """Return the parameters and the cluster of a kernel."""
        parameters = tuple(HostParameter(*own) for own in function.parameters)
        return Declaration(function.symbol, parameters, self.clusters.get(function.symbol, (1, 1, 1)))

    def name_of(self, variable: Variable) -> str:
        return self.module.debug.variable(variable.described).get("name", variable.name)


class CompiledText(CompiledModule):
    """The LLVM IR of a text. Raises UnavailableError without clang, SimtbedError where it ends without a message.

    errors: of the removed declarations of device code, by the kernel; "" for those of no kernel.
    """

    def __init__(
        self,
        source: SourceText,
        included: Mapping[str, str],
        options: Sequence[str],
        instances: Sequence[str],
        key: str,
    ) -> None:
        """included: the user's files by path. key: of the module in the cache on disk."""
        self.source, self.options, self.instances, self._files = source, tuple(options), tuple(instances), included
        self._names = included_files(source.text, source.folder, options)[1]
        stored = disk_cache.load(f"{key}.llvm", bytes.decode)
        self.errors: dict[str, list[Error]] = {}
        if stored is None:
            self.text, self.errors = self._compiled()
            if not self.errors:
                disk_cache.save(f"{key}.llvm", self.text.encode())
        else:
            self.text = stored

    def _compiled(self) -> tuple[str, dict[str, list[Error]]]:
        """Compile the text without the erroneous declarations. Return the module, and the errors in device code."""
        from .header import device_header  # late: it reads the table of operations

        requests = "".join(
            f"\n__device__ __attribute__((used)) auto *{_REQUEST}{number} = &{name};"
            for number, name in enumerate(self.instances)
        )
        folders = [self.source.folder, *include_folders(self.options)]
        texts = {SOURCE: self.source.text + requests + "\n", **self._files}
        shipped = {f"{ROOT}/include/{name}": included(name) for name in self._names}
        early = "".join(f"#include <{name}>\n" for name in self._names if included(name))  # before macros of the text
        shipped |= {HEADER: f"{device_header()}\n{early}"}
        device_errors: dict[str, list[Error]] = {}
        causes: dict[str, Error] = {}  # by the words of a removed declaration of host code
        before = clang.processor_seconds()
        for _ in range(_ROUNDS):
            if clang.processor_seconds() - before > 2 * clang.SECONDS:
                raise SimtbedError(f"the text is not compiled in {2 * clang.SECONDS} s of processor time")
            module, errors = clang.compile_text(texts | shipped, self.options, folders)
            if not errors:
                return module, device_errors
            removed = {
                file: _erroneous(text, {e.line for e in errors if e.file == file}) for file, text in texts.items()
            }
            if not any(removed.values()) or any(error.message.startswith(_ASSERTION) for error in errors):
                break
            for file, own in removed.items():
                for segment in own:
                    inside = [e for e in errors if e.file == file and segment.first <= e.line <= segment.last]
                    if segment.is_device_code:
                        device_errors.setdefault(segment.kernel, []).extend(_cause(error, causes) for error in inside)
                    else:
                        causes |= {
                            word: inside[0] for word in segment.words if word.isidentifier() and word not in causes
                        }
            texts = {file: without(text, removed[file]) for file, text in texts.items()}
        return "", device_errors | {"": [*device_errors.get("", []), *errors]}

    # -------------------------------------------------------------- kernels
    @cached_property
    def kernels(self) -> Mapping[str, DescribedFunction]:
        """The kernels by name, instances of templates as they were requested."""
        requested = {}
        for number, name in enumerate(self.instances):
            variable = self.module.variables.get(f"{_REQUEST}{number}")
            if variable is not None and isinstance(variable.initial, Global):
                requested[variable.initial.name] = name
        kernels = sorted(self.functions.values(), key=lambda own: (own.file != SOURCE, own.file, own.line))
        return {requested.get(own.symbol, own.name): own for own in kernels}

    def function(self, name: str) -> DescribedFunction:
        """Return a kernel. Raises CompileError for an erroneous one, LaunchError for an unknown name."""
        if name in self.kernels:
            return self.kernels[name]
        if errors := [*self.errors.get(name, []), *self.errors.get("", [])]:
            raise self.refused(errors)
        if name in _TEMPLATE.findall(self.source.text):
            raise LaunchError(f'{name} is a template: name its instances, such as instances=("{name}<float>",)')
        raise LaunchError(f"the text has no kernel {name}; it has {', '.join(self.names) or 'none'}")

    def variable(self, name: str) -> Variable | None:
        """Return a `__constant__` or `__device__` variable by its name in the text."""
        for variable in self.module.variables.values():
            if variable.described >= 0 and variable.space in (1, 4) and self.name_of(variable) == name:
                return variable
        return None

    @property
    def names(self) -> list[str]:
        """The names of the kernels, with the erroneous ones."""
        return [*self.kernels, *(name for name in self.errors if name and name not in self.kernels)]

    def refused(self, errors: Sequence[Error]) -> CompileError:
        """Return errors of the compiler."""
        results = []
        for error in sorted(dict.fromkeys(errors), key=lambda error: (error.file != SOURCE, error.file, error.line))[
            :_MOST_ERRORS
        ]:
            instance = error.line - self.source.text.count("\n") - 2  # each in a line behind the text
            requested = error.file == SOURCE and 0 <= instance < len(self.instances)
            prefix = f"instance {self.instances[instance]}: " if requested else ""
            span = self.source.span(error.file, error.line, error.column)
            results.append(Diagnostic("compile", prefix + _message(error, span), span))
        absent = missing(self.source.text, self._names)
        if absent:
            hint = f'{results[0].message}; not found: {", ".join(absent)}: give their folder, options=("-Ifolder",)'
            results[0] = replace(results[0], message=hint)
        return CompileError(results)


def _erroneous(text: str, lines: set[int]) -> list[Segment]:
    """Return the declarations of a text with errors in these lines; host code first, which may cause the others."""
    if not lines:
        return []
    own = [s for s in segments(text) if any(s.first <= line <= s.last for line in lines)]
    host = [s for s in own if not s.is_device_code]
    return host or own


def _cause(error: Error, causes: Mapping[str, Error]) -> Error:
    """Return the error of the removed declaration of a name that an error says is unknown, else the error."""
    name = re.search(r"(?:undeclared identifier|no template named|unknown type name) '(\w+)'", error.message)
    return causes.get(name[1], error) if name else error


def _message(error: Error, span: Span) -> str:
    """Return the message of the compiler in this project's words."""
    text = error.message[:_MOST_CHARACTERS]
    if error.option == "-Wuninitialized":
        return f"{text.removeprefix('variable ').partition(' is ')[0]} is read before it is assigned".replace("'", "")
    if text.endswith("file not found") and _COMPUTED.match(source_text.line(span.file, span.line)):
        return "an #include of a macro is not supported: write the file's name"
    if "cudaLaunchDevice" in text or "cudaConfigureCall" in text:
        return "launches of kernels in kernels are not supported"
    return text
