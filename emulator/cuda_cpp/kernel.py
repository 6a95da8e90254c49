"""Kernels of a CUDA C++ text for `launch`."""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import disk_cache
from ..checked import shown
from ..errors import LaunchError
from ..frontend.launchable import LaunchableKernel
from ..frontend.signature import Signature
from ..language.types import Array, ArrayLayout, Scalar, Vector
from ..own_code import CudaText, OwnArgument
from ..runtime.arrays import DeviceArray, NewArray, split
from . import clang
from .declaration import Alias, Declaration, HostInterface, HostParameter, OutsideVariable, cached
from .header_files import headers_digest, include_folders, included_files
from .places import SourceText
from .types import CType, RecordType, alignment_of, scalar_leaves, size_of

if TYPE_CHECKING:
    from ..ir import nodes as ir
    from .lowering import LoweredKernel
    from .parsed import ParsedText
    from .tree import Function

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

    Assign `variables[name] = array` between launches. A `__device__` variable keeps what kernels write. The text is parsed at the first
    request that the cache on disk does not answer.
    """

    def __init__(self, source: SourceText, options: Sequence[str] = (), instances: Sequence[str] = ()) -> None:
        self.source, self.options, self.instances = source, tuple(options), tuple(instances)
        self._kernels: dict[str, CudaKernel] = {}
        self.variables = Variables()

    def __iter__(self) -> Iterator[str]:
        return iter(self.parsed.kernels)

    def __len__(self) -> int:
        return len(self.parsed.kernels)

    def __getitem__(self, name: str) -> CudaKernel:
        """Return a kernel. Raises CompileError if it is not supported, LaunchError for an unknown name."""
        if name not in self._kernels:
            key = sha256(repr((self.digest, name)).encode()).hexdigest()
            declaration = cached(key, Declaration.decode, lambda: _declaration(self.parsed.function(name)))
            self._kernels[name] = CudaKernel(self, name, declaration)
        return self._kernels[name]

    def __getattr__(self, name: str) -> CudaKernel:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except LaunchError as error:
            raise AttributeError(str(error)) from None

    @cached_property
    def parsed(self) -> ParsedText:
        """The text after libclang. Raises UnavailableError without libclang."""
        from .parsed import ParsedText  # late: most processes find their kernels on the disk

        return ParsedText(self.source, self.options, self.instances)

    def initial(self, name: str) -> np.ndarray[Any, Any]:
        """Return the initial contents of a `__constant__` or `__device__` variable, flat. Raises LaunchError for other names."""
        return self.parsed.initial(name)

    def __repr__(self) -> str:
        return f"<CudaSource {self.source.file}>"

    @cached_property
    def digest(self) -> str:
        """A digest of everything that the kernels of the text depend on."""
        inputs = (
            *(self.source, self.options, self.instances, self.included),
            *(clang.identity(), headers_digest(), disk_cache.edition()),
        )
        return sha256(repr(inputs).encode()).hexdigest()

    @cached_property
    def included(self) -> dict[str, str]:
        """The user's files that the text includes, by path."""
        return included_files(self.source.text, self.source.folder, self.options)[0]

    @cached_property
    def translation_unit(self) -> str:
        """The text for another compiler, with the user's lines and the requested instances, and a digest of included files."""
        requests = "".join(f"\nstatic auto *simtbed_instance_{n} = &{name};" for n, name in enumerate(self.instances))
        file = self.source.file.replace("\\", "\\\\").replace('"', '\\"')
        included = f"\n// includes {sha256(repr(self.included).encode()).hexdigest()}" if self.included else ""
        return f'#line {self.source.offset + 1} "{file}"\n{self.source.text}{requests}{included}\n'

    @property
    def compiler_options(self) -> tuple[str, ...]:
        """Options of nvcc: the user's with absolute folders, and the folder of the text."""
        rest = [option for option, before in zip(self.options, ("", *self.options), strict=False) if before != "-I"]
        folders = [*[self.source.folder] * bool(self.source.folder), *include_folders(self.options)]
        return (*(option for option in rest if not option.startswith("-I")), *(f"-I{folder}" for folder in folders))


class Variables(dict[str, Any]):
    """Contents of variables outside of functions: NumPy arrays of constant memory, DeviceArrays of global memory."""


def _declaration(function: Function) -> Declaration:
    parameters = (HostParameter(p.name, p.type, p.reference) for p in function.parameters)
    return Declaration(function.symbol, tuple(parameters))


Aliases = tuple[tuple[str, Alias], ...]
"""Pointer parameters without memory of their own."""


class CudaKernel(LaunchableKernel):
    """A kernel of a CUDA C++ text, an argument of `launch`.

    A pointer parameter takes a contiguous array, the array of another parameter, or None. It accepts the declared element type, and
    structured or complex arrays for structs.
    """

    words = WORDS

    def __init__(self, owner: CudaSource, name: str, declaration: Declaration, aliases: Aliases = ()) -> None:
        self.owner, self.declaration = owner, declaration
        self.__name__ = self.__qualname__ = name
        self.__doc__ = None
        self.aliases = aliases
        self.text = owner.source.text
        self.places = f"{owner.source.file}:{owner.source.offset}"
        self._variants: dict[Aliases, CudaKernel] = {}

    def __repr__(self) -> str:
        return f"<CudaKernel {self.__name__}>"

    @property
    def parameters(self) -> tuple[HostParameter, ...]:
        return self.declaration.parameters

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
            if name in bound and isinstance(parameter.type, RecordType | Vector) and not parameter.reference:
                bound[name] = _struct(name, parameter.type, bound[name])
            if name not in bound or not parameter.is_address:
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
            self._variants[key] = CudaKernel(self.owner, self.__name__, self.declaration, key)
        return self._variants[key]

    # -------------------------------------------------------------- protocol
    def signature(self) -> Signature:
        return self._interface.signature

    @property
    def defaults(self) -> Mapping[str, Any]:
        """The contents of variables outside of functions."""
        variables, interface = self.owner.variables, self._interface
        results: dict[str, Any] = {name: self._constant(name, row) for name, row in interface.constants.items()}
        for name, row in interface.variables.items():
            contents = variables.get(name)
            if not isinstance(contents, DeviceArray):
                contents = np.frombuffer(row.contents, np.uint8) if contents is None else np.ascontiguousarray(contents)
                variables[name] = DeviceArray(contents.reshape(-1).view(split(row.element)[0].dtype).copy())
            results[name] = variables[name]
        return results

    def _constant(self, name: str, row: OutsideVariable) -> Any:
        values = self.owner.variables.get(name)
        dtype, size = split(row.element)[0].dtype, len(row.contents)
        if values is None:
            return np.frombuffer(row.contents, dtype)
        array = np.ascontiguousarray(values)
        array = array.reshape(-1) if array.dtype == dtype else array.reshape(-1).view(np.uint8)
        if array.nbytes != size:
            count = size // row.element.size
            raise LaunchError(f"{name} has {count} elements of {row.element}, its contents are {shown(values)}")
        return array.view(dtype)

    def specialise(
        self, consts: Mapping[str, Any], real: Scalar | None, layouts: Mapping[str, ArrayLayout]
    ) -> ir.Program:
        for name, layout in layouts.items():
            if not layout.contiguous:
                raise LaunchError(f"{name} is a pointer: give a contiguous array, np.ascontiguousarray({name})")
        contents = {name: consts[name] for name in self._interface.constants}
        return self._lowered.program if not contents else self._lower(contents).program

    def own_code(self, consts: Mapping[str, Any]) -> CudaText | None:
        """Return the text that contains the kernel; None for a kernel with `__device__` variables."""
        interface = self._interface
        if interface.variables:
            return None
        constants = {
            row.symbol: np.array(consts[name], split(row.element)[0].dtype).tobytes()
            for name, row in interface.constants.items()
        }
        arguments = [self._argument(parameter) for parameter in self.parameters]
        return CudaText(
            kernel=self.declaration.symbol,
            arguments=tuple(arguments),
            constants=tuple(constants.items()),
            text=self.owner.translation_unit,
            options=self.owner.compiler_options,
        )

    def _argument(self, parameter: HostParameter) -> OwnArgument:
        """Return the bytes of a parameter of the text."""
        name, type = parameter.name, parameter.type
        if parameter.is_address:
            alias = dict(self.aliases).get(name, Alias(name))
            parameter_type = self._interface.signature.parameters.get(alias.parameter or "")
            has_memory = parameter_type is not None and isinstance(parameter_type.type, Array)
            pointer = ((0, str(alias.parameter)),) if has_memory else ()
            return OwnArgument(8, 8, pointer, alias.offset, alias.parameter is None)
        contents = tuple((offset, "@:".join((name, *path))) for path, _, offset in scalar_leaves(type))
        return OwnArgument(size_of(type), alignment_of(type), contents)

    def digest(self) -> str:
        return sha256(repr((self.owner.digest, self.__name__, self.aliases)).encode()).hexdigest()

    # -------------------------------------------------------------- the kernel's program
    @cached_property
    def _interface(self) -> HostInterface:
        def make() -> HostInterface:
            from .host_interface import host_interface  # late: most processes find it on the disk

            return host_interface(self._lowered, self.parameters, dict(self.aliases))

        key = sha256(f"interface {self.digest()}".encode()).hexdigest()
        return cached(key, HostInterface.decode, make)

    @cached_property
    def _lowered(self) -> LoweredKernel:
        return self._lower({})

    def _lower(self, contents: Mapping[str, tuple[Any, ...]]) -> LoweredKernel:
        from .lowering import lower  # late, as above

        return lower(self.__name__, self.owner.parsed.function(self.__name__), dict(self.aliases), contents)


def _struct(name: str, type: RecordType | Vector, value: Any) -> Any:
    """Return an argument for a struct or a vector that is passed by value: a tuple with names. value: with items, in order or by name,
    or with attributes."""
    kinds: dict[str, CType] = (
        dict.fromkeys("xyzw"[: type.lanes], type.element)
        if isinstance(type, Vector)
        else {field: kind for field, (kind, _) in type.fields.items()}
    )
    if isinstance(value, np.ndarray) and value.dtype.names is not None and value.size == 1:
        value = value.reshape(())[()]
    if isinstance(value, np.void | Mapping):
        items = [value[field] for field in kinds]
    elif isinstance(value, tuple | list | np.ndarray) and len(value) == len(kinds):
        items = list(value)
    elif all(hasattr(value, field) for field in kinds):
        items = [getattr(value, field) for field in kinds]
    else:
        raise LaunchError(f"{name} is {type}: give ({', '.join(kinds)}), not {shown(value)}")
    named = namedtuple(type.name.rpartition("::")[2], list(kinds), rename=True)  # type: ignore[misc]
    nested = (
        _struct(name, kind, item) if isinstance(kind, RecordType | Vector) else item
        for kind, item in zip(kinds.values(), items, strict=True)
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
