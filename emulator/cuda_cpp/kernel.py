"""Kernels of a CUDA C++ text for `launch`."""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, cast

import numpy as np

from ..checked import shown
from ..errors import CompileError, Diagnostic, LaunchError
from ..frontend.launchable import LaunchableKernel
from ..frontend.signature import KernelParameter, RecordArrayParameter, RecordParameter, Signature
from ..ir import nodes as ir
from ..language.types import Array, ArrayLayout, Scalar, Vector
from ..runtime.arrays import DeviceArray, NewArray
from . import clang
from .lowering import LoweredKernel, constant_element, initial_values, lower
from .places import SourceText
from .planning import Alias
from .reading import Reader
from .tree import Function, Variable
from .types import CType, PointerType, RecordType, components, size_of
from .values import Memory

WORDS = {
    "st.sync()": "__syncthreads()",
    "st.syncwarp()": "__syncwarp()",
    "st.syncwarp(mask)": "__syncwarp(mask)",
    "st.ballot(condition)": "__ballot_sync(0xffffffff, condition)",
    "st.grid_sync()": "grid.sync()",
    "st.async_wait(...)": "__pipeline_wait_prior(...)",
    "st.async_wait(0)": "__pipeline_wait_prior(0)",
    "st.fence()": "__threadfence()",
    "st.fence_block()": "__threadfence_block()",
    "st.volatile_load()": "a volatile load",
    "st.volatile_store()": "a volatile store",
    "# simtbed: allow": "// simtbed: allow",
}
"""The language's words in findings, in CUDA C++."""


class CudaSource(Mapping[str, "CudaKernel"]):
    """The kernels of a CUDA C++ text, by name. variables: contents of its `__constant__` and `__device__` variables.

    Assign `variables[name] = array` between launches. A `__device__` variable keeps what kernels write.
    """

    def __init__(self, source: SourceText, options: Sequence[str] = (), instances: Sequence[str] = ()) -> None:
        self.source, self.options, self.instances = source, tuple(options), tuple(instances)
        unit = clang.parse(source.text, self.options, self.instances)
        reader = Reader(source)
        self._cursors, self._templates = _kernels(reader, unit, self.instances)
        self._reader, self._unit = reader, unit
        self._kernels: dict[str, CudaKernel] = {}
        self.variables = Variables()

    def __iter__(self) -> Iterator[str]:
        return iter(self._cursors)

    def __len__(self) -> int:
        return len(self._cursors)

    def __getitem__(self, name: str) -> CudaKernel:
        """Return a kernel. Raises CompileError if it is not supported, LaunchError for an unknown name."""
        if name not in self._kernels:
            if name not in self._cursors:
                if results := self._errors(None):
                    raise CompileError(results)
                if name in self._templates:
                    raise LaunchError(f'{name} is a template: name its instances, such as instances=("{name}<float>",)')
                raise LaunchError(f"the text has no kernel {name}; it has {', '.join(self._cursors) or 'none'}")
            functions = _call_closure(self._reader.kinds, self._cursors[name])
            if results := self._errors(functions):
                raise CompileError(results)
            function = self._reader.function(self._cursors[name])
            self._kernels[name] = CudaKernel(self, name, function)
        return self._kernels[name]

    def __getattr__(self, name: str) -> CudaKernel:
        if name.startswith("_") or name not in self._cursors:
            raise AttributeError(f"the text has no kernel {name}; it has {', '.join(self._cursors) or 'none'}")
        return self[name]

    def initial(self, name: str) -> np.ndarray[Any, Any]:
        """Return the initial contents of a `__constant__` or `__device__` variable, flat. Raises LaunchError for other names."""
        kinds = self._reader.kinds
        for cursor in self._unit.cursor.walk_preorder():
            if cursor.kind == kinds.VAR_DECL and cursor.spelling == name:
                variable = self._reader.variable(cursor)
                if variable.place in ("constant", "device"):
                    return np.array(initial_values(variable), constant_element(variable.type).dtype)
        raise LaunchError(f"the text has no __constant__ or __device__ variable {name}")

    def __repr__(self) -> str:
        return f"<CudaSource {self.source.file}: {', '.join(self._cursors)}>"

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
                span = self.source.span(_Extent(entry.location, entry.location))
                results.append(Diagnostic("compile", requested + _message(entry), span))
        return results

    @cached_property
    def digest(self) -> str:
        # Compiled programs are cached for one edition of the package, its headers included.
        return sha256(repr((self.source, self.options, self.instances)).encode()).hexdigest()


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


class Variables(dict[str, Any]):
    """Contents of variables outside of functions: NumPy arrays of constant memory, DeviceArrays of global memory."""


def _kernels(reader: Reader, unit: Any, instances: Sequence[str]) -> tuple[dict[str, Any], set[str]]:
    """Return the cursors of the kernels of a text, instances of templates as they were requested, and the names of templates."""
    kinds, results, templates = reader.kinds, dict[str, Any](), set[str]()

    def visit(cursor: Any) -> None:
        for child in cursor.get_children():
            if child.location.file is None or child.location.file.name != clang.SOURCE:
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
            if definition is not None and definition.hash not in results:
                results[definition.hash] = definition
                pending.append(definition)
    return list(results.values())


Aliases = tuple[tuple[str, Alias], ...]
"""Pointer parameters without memory of their own."""


class CudaKernel(LaunchableKernel):
    """A kernel of a CUDA C++ text, an argument of `launch`.

    A pointer parameter takes a contiguous array, the array of another parameter, or None. It accepts the declared element type, and
    structured or complex arrays for structs.
    """

    words = WORDS

    def __init__(self, owner: CudaSource, name: str, function: Function, aliases: Aliases = ()) -> None:
        self.owner, self.function = owner, function
        self.__name__ = self.__qualname__ = name
        self.__doc__ = None
        self.aliases = aliases
        self.text = owner.source.text
        self.places = f"{owner.source.file}:{owner.source.offset}"
        self._variants: dict[Aliases, CudaKernel] = {}

    def __repr__(self) -> str:
        return f"<CudaKernel {self.__name__}>"

    @property
    def parameters(self) -> list[Variable]:
        return self.function.parameters

    # -------------------------------------------------------------- arguments
    def bind(self, args: Any) -> tuple[LaunchableKernel, Any]:
        """Return the kernel for pointers that are null or share memory, and the arguments that it takes."""
        if self.aliases:
            return self, args
        if isinstance(args, tuple | list):
            names = [parameter.name for parameter in self.parameters]
            if len(args) != len(names):
                raise LaunchError(f"{self.__name__} takes {', '.join(names) or 'nothing'}: args are {len(args)}")
            args = dict(zip(names, args, strict=True))
        if not isinstance(args, Mapping):
            return self, args
        aliases, owners, bound = {}, list[str](), dict(args)
        for parameter in self.parameters:
            name = parameter.name
            if name in bound and isinstance(parameter.type, RecordType) and not parameter.reference:
                bound[name] = _struct(name, parameter.type, bound[name])
            if name not in bound or not (isinstance(parameter.type, PointerType) or parameter.reference):
                continue
            if bound[name] is None and not parameter.reference:
                aliases[name] = Alias(None)
            elif (first := next((entry for entry in owners if _is_same(bound[entry], bound[name])), None)) is not None:
                aliases[name] = Alias(first)
            else:
                owners.append(name)
                continue
            del bound[name]
        return self.with_aliases(aliases), bound

    def with_aliases(self, aliases: Mapping[str, Alias]) -> CudaKernel:
        """Return the kernel for pointers into the memory of other parameters, created once."""
        if not aliases:
            return self
        key = tuple(sorted(aliases.items(), key=lambda item: item[0]))
        if key not in self._variants:
            self._variants[key] = CudaKernel(self.owner, self.__name__, self.function, key)
        return self._variants[key]

    @cached_property
    def _default(self) -> LoweredKernel:
        return lower(self.__name__, self.function, dict(self.aliases), {})

    @property
    def defaults(self) -> Mapping[str, Any]:
        """The contents of variables outside of functions."""
        variables, results = self.owner.variables, dict[str, Any]()
        names = {parameter.name for parameter in self.parameters}
        for name, variable in self._default.constants.items():
            results[name] = self._constant(variable)
        for name, memory in self._default.arrays.items():
            if name not in names and memory.variable is not None:
                if name not in variables:
                    variables[name] = DeviceArray(
                        np.array(initial_values(memory.variable)).view(_dtype(memory.element))
                    )
                elif not isinstance(variables[name], DeviceArray):
                    variables[name] = DeviceArray(
                        np.ascontiguousarray(variables[name]).reshape(-1).view(_dtype(memory.element))
                    )
                results[name] = variables[name]
        return results

    def _constant(self, variable: Variable) -> Any:
        element = constant_element(variable.type)
        values = self.owner.variables.get(variable.name)
        count = size_of(variable.type) // element.size
        if values is None:
            return np.array(initial_values(variable), element.dtype)
        array = np.ascontiguousarray(values)
        array = array.reshape(-1) if array.dtype == element.dtype else array.reshape(-1).view(np.uint8)
        if array.nbytes != size_of(variable.type):
            raise LaunchError(f"{variable.name} has {count} elements of {element}, its contents are {shown(values)}")
        return array.view(element.dtype)

    # -------------------------------------------------------------- protocol
    def signature(self) -> Signature:
        lowered = self._default
        parameters: dict[str, KernelParameter] = {}
        for parameter in self.parameters:
            name = parameter.name
            if name in lowered.arrays or not (isinstance(parameter.type, PointerType) or parameter.reference):
                parameters[name] = self._parameter(parameter, lowered.arrays.get(name))
            elif name not in dict(self.aliases):  # it is never accessed
                parameters[name] = KernelParameter(None)
        for name, variable in lowered.constants.items():
            parameters[name] = KernelParameter(Array(constant_element(variable.type), None, "constant"))
        for name, memory in lowered.arrays.items():
            parameters.setdefault(name, KernelParameter(Array(memory.element, None, "global")))
        return Signature(parameters)

    def _parameter(self, parameter: Variable, memory: Memory | None) -> KernelParameter:
        """Return a parameter by value, or a pointer to memory."""
        name, type = parameter.name, parameter.type
        if memory is not None:
            if memory.fields is not None:
                fields = tuple(
                    (own, tuple(own.partition("@:")[2].split(".")), kind) for own, kind in memory.fields.values()
                )
                return KernelParameter(RecordArrayParameter(str(memory.declared), fields))
            return KernelParameter(Array(memory.element, None, "global"), accepts=_accepted(memory.declared))
        if isinstance(type, RecordType):
            pieces = tuple(
                (f"{name}@:{path.replace('.', '@:')}", tuple(path.split(".")), kind) for path, kind, _ in type.leaves()
            )
            return KernelParameter(RecordParameter(type.name, cast(Any, pieces)))
        return KernelParameter(cast(Any, type))

    def specialise(
        self, consts: Mapping[str, Any], real: Scalar | None, layouts: Mapping[str, ArrayLayout]
    ) -> ir.Program:
        for name, layout in layouts.items():
            if not layout.contiguous:
                raise LaunchError(f"{name} is a pointer: give a contiguous array, np.ascontiguousarray({name})")
        contents = {name: consts[name] for name in self._default.constants}
        if not contents:
            return self._default.program
        return lower(self.__name__, self.function, dict(self.aliases), contents).program

    def digest(self) -> str | None:
        return sha256(repr((self.owner.digest, self.__name__, self.aliases)).encode()).hexdigest()


def _struct(name: str, type: RecordType, value: Any) -> Any:
    """Return an argument for a struct that is passed by value: a tuple with names. value: with items, in order or by name, or with
    attributes."""
    if isinstance(value, np.ndarray) and value.dtype.names is not None and value.size == 1:
        value = value.reshape(())[()]
    if isinstance(value, np.void | Mapping):
        items = [value[field] for field in type.fields]
    elif isinstance(value, tuple | list) and len(value) == len(type.fields):
        items = list(value)
    elif all(hasattr(value, field) for field in type.fields):
        items = [getattr(value, field) for field in type.fields]
    else:
        raise LaunchError(f"{name} is {type.name}: give ({', '.join(type.fields)}), not {shown(value)}")
    kinds = [kind for kind, _ in type.fields.values()]
    named = namedtuple(type.name.rpartition("::")[2], list(type.fields), rename=True)  # type: ignore[misc]
    nested = (
        _struct(name, kind, item) if isinstance(kind, RecordType) else item
        for kind, item in zip(kinds, items, strict=True)
    )
    return named(*nested)


def _is_same(a: Any, b: Any) -> bool:
    """Return whether two arguments are the same memory."""
    if a is b and not isinstance(a, NewArray):
        return True
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)) or not a.size:
        return False
    first, second = a.__array_interface__["data"][0], b.__array_interface__["data"][0]
    return bool(first == second and a.nbytes == b.nbytes and a.flags.c_contiguous and b.flags.c_contiguous)


def _dtype(element: Scalar | Vector) -> np.dtype[Any]:
    return (element.element if isinstance(element, Vector) else element).dtype


def _accepted(type: CType) -> tuple[str, ...]:
    """Return the element types of arrays that a pointer to a type accepts, in NumPy's words; structs are accepted by their size."""
    kinds = sorted({kind.name for kind in components(type)})
    return (f"V{size_of(type)}", *kinds) if isinstance(type, RecordType | Vector) else tuple(kinds)


def cuda_source(text: str, options: Sequence[str] = (), instances: Sequence[str] = ()) -> CudaSource:
    """Return the kernels of a CUDA C++ text, by name, for `launch`.

    options: of nvcc; `-D`, `-U` and `-std` have an effect. instances: instances of templates, such as "scale<float>".
    Findings and counters refer to the lines of the text, inside the Python file that contains it.

    Raises UnavailableError without libclang. Errors of a kernel are raised when it is taken from the result.
    """
    if not isinstance(text, str):
        raise LaunchError(f"text is CUDA C++ as a str, not {shown(text)}")
    caller = sys._getframe(1).f_code.co_filename
    return CudaSource(SourceText.inside(text, caller), options, instances)


def cuda_file(path: str, options: Sequence[str] = (), instances: Sequence[str] = ()) -> CudaSource:
    """Return the kernels of a CUDA C++ file, as `cuda_source`. Raises SimtbedError for a file that cannot be read."""
    return CudaSource(SourceText.of_file(str(path)), options, instances)
