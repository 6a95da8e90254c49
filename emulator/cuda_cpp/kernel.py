"""Kernels of a CUDA C++ text for `launch`."""

from __future__ import annotations

import os
import re
import sys
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import disk_cache
from ..checked import shown
from ..errors import LaunchError
from ..frontend.launchable import LaunchableKernel
from ..frontend.signature import Signature
from ..ir.names import components
from ..ir.walk import declared_bytes
from ..language.types import U64, Array, ArrayLayout, Scalar
from ..llvmir import ptx_words
from ..llvmir.allocations import MEMORY, TABLE
from ..llvmir.debug import ArrayOf, PointerTo, Record, SourceType, source_leaves, source_size
from ..own_code import CudaText, OwnArgument
from ..runtime.arrays import DeviceArray, MappedArray, NewArray, split
from ..runtime.textures import Surface, Texture
from . import clang
from .declaration import (
    Alias,
    Declaration,
    HostInterface,
    HostParameter,
    LaunchForm,
    OutsideVariable,
    is_tensor_map,
)
from .header_files import headers_digest, include_folders, included_files
from .places import SourceText

if TYPE_CHECKING:
    from ..ir import nodes as ir
    from .compiled_text import CompiledText
    from .lowering import LoweredKernel

WORDS = {
    **ptx_words.WORDS,
    "st.sync()": "__syncthreads()",
    "st.syncwarp()": "__syncwarp()",
    "st.syncwarp(mask)": "__syncwarp(mask)",
    "st.ballot(condition)": "__ballot_sync(0xffffffff, condition)",
    "st.grid_sync()": "grid.sync()",
    "st.cluster_sync()": "cluster.sync()",
    "st.async_wait(...)": "__pipeline_wait_prior(...)",
    "st.async_wait(0)": "__pipeline_wait_prior(0)",
    "st.fence()": "__threadfence()",
    "st.fence_block()": "__threadfence_block()",
    "st.volatile_load()": "a volatile load",
    "st.volatile_store()": "a volatile store",
    "event.record(a); b.wait(event)": "cudaEventRecord(event, a); cudaStreamWaitEvent(b, event)",
    "# simtbed: allow": "// simtbed: allow",
}
"""The language's words in findings, in CUDA C++."""


class CudaSource(Mapping[str, "CudaKernel"]):
    """The kernels of a CUDA C++ text, by name. variables: contents of its `__constant__` and `__device__` variables.

    Assign `variables[name] = array` between launches. A `__device__` variable keeps what kernels write. The files included by the
    text are read now; it is compiled at the first request without an entry in the cache on disk.
    """

    def __init__(self, source: SourceText, options: Sequence[str] = (), instances: Sequence[str] = ()) -> None:
        self.source, self.options, self.instances = source, tuple(options), tuple(instances)
        self._kernels: dict[str, CudaKernel] = {}
        self.variables = Variables()
        self.included = included_files(source.text, source.folder, self.options)[0]
        """The user's files included by the text, by path."""

    def __iter__(self) -> Iterator[str]:
        return iter(self.compiled.names)

    def __len__(self) -> int:
        return len(self.compiled.names)

    def __getitem__(self, name: str) -> CudaKernel:
        """Return a kernel. Raises CompileError if it is not supported, LaunchError for an unknown name."""
        if name not in self._kernels:
            declaration = disk_cache.cached_object(f"declaration {self.digest} {name}", lambda: self._declaration(name))
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
    def compiled(self) -> CompiledText:
        """The text after clang. Raises UnavailableError without clang."""
        from .compiled_text import CompiledText  # late: most processes find their kernels on the disk

        return CompiledText(self.source, self.included, self.options, self.instances, self.digest)

    def _declaration(self, name: str) -> Declaration:
        return self.compiled.declaration(self.compiled.function(name))

    def initial(self, name: str) -> np.ndarray[Any, Any]:
        """Return the initial contents of a `__constant__` or `__device__` variable, flat. Raises LaunchError for other names."""
        from .lowering import outside_variable  # late, as above

        variable = self.compiled.variable(name)
        if variable is None:
            raise LaunchError(f"the text has no __constant__ or __device__ variable {name}")
        row = outside_variable(self.compiled, variable)
        return np.frombuffer(row.contents, row.element.dtype)

    def __repr__(self) -> str:
        return f"<CudaSource {self.source.file}>"

    @cached_property
    def digest(self) -> str:
        """A digest of the inputs of the compilation: texts, options, compiler, headers and package."""
        inputs = (
            *(self.source, self.options, self.instances, self.included),
            *(clang.compiler().identity, headers_digest(), disk_cache.edition()),
        )
        return sha256(repr(inputs).encode()).hexdigest()

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


Aliases = tuple[tuple[str, Alias], ...]
"""Pointer parameters without memory of their own."""
Textures = tuple[tuple[str, LaunchForm], ...]
"""Forms of textures, surfaces and tensor maps, by parameter or reference."""


class CudaKernel(LaunchableKernel):
    """A kernel of a CUDA C++ text, an argument of `launch`.

    A pointer parameter takes a contiguous array, the array of another parameter, or None. It accepts the declared element type, and
    structured or complex arrays for structs.
    """

    words = WORDS

    def __init__(
        self, owner: CudaSource, name: str, declaration: Declaration, aliases: Aliases = (), textures: Textures = ()
    ) -> None:
        self.owner, self.declaration, self.textures = owner, declaration, textures
        self.__name__ = self.__qualname__ = name
        self.__doc__ = None
        self.aliases = aliases
        self.text = owner.source.text
        self.places = f"{os.path.abspath(owner.source.file)}:{owner.source.offset}"  # as in line tables
        self._variants: dict[tuple[Aliases, Textures], CudaKernel] = {}

    def __repr__(self) -> str:
        return f"<CudaKernel {self.__name__}>"

    @property
    def parameters(self) -> tuple[HostParameter, ...]:
        return self.declaration.parameters

    @property
    def cluster(self) -> tuple[int, int, int]:
        return self.declaration.cluster

    @property
    def pointers(self) -> list[HostParameter]:
        """The pointers in the parameters, those in structs included."""
        return [pointer for parameter in self.parameters for pointer in parameter.pointers]

    # -------------------------------------------------------------- arguments
    def bind(self, args: Any) -> tuple[LaunchableKernel, Any]:
        """Return the kernel for pointers that are null or share memory and for textures, and the arguments that it takes."""
        if isinstance(args, tuple | list):
            names = [parameter.name for parameter in self.parameters]
            if len(args) != len(names):
                raise LaunchError(f"{self.__name__} takes {', '.join(names) or 'nothing'}: args are {len(args)}")
            args = dict(zip(names, args, strict=True))
        if not isinstance(args, Mapping):
            return self, args
        aliases, owners, bound = dict(self.aliases), list[str](), dict(args)
        for parameter in self.parameters:
            name = parameter.name
            if name in bound and isinstance(parameter.type, Record | ArrayOf) and not is_tensor_map(parameter.type):
                bound[name] = _struct(name, parameter.type, bound[name])
        if self.textures:
            return self, bound
        with_addresses = MEMORY in bound
        for parameter in self.parameters:
            if parameter.name in bound and not is_tensor_map(parameter.type):
                own = pointers_of(parameter, bound[parameter.name])
                bound = {name: value for name, value in own.items() if name not in aliases} | bound
        for parameter in self.pointers:
            name = parameter.name
            if name not in bound or with_addresses:
                continue
            if bound[name] is None and not parameter.reference:
                aliases[name] = Alias(None)
            elif (first := next((entry for entry in owners if _is_same(bound[entry], bound[name])), None)) is not None:
                aliases[name] = Alias(first)
            else:
                owners.append(name)
                continue
            del bound[name]
        if (owner := self.with_aliases(aliases)).takes_addresses and not with_addresses:
            advice = "run its whole program, simtbed check FILE.cu"
            raise LaunchError(f"{self.__name__} follows pointers in global memory, which are addresses: {advice}")
        textures = owner._textures(bound)
        kernel = self.with_aliases(aliases, {name: value.form for name, value in textures.items()})
        return kernel, bound | {name: value.array for name, value in textures.items()}

    def _textures(self, args: Mapping[str, Any]) -> dict[str, Surface | Texture | MappedArray]:
        """Return the textures, surfaces and tensor maps of a launch by parameter or reference. Raises LaunchError where one is missing or
        not expected."""
        interface, variables = self.interface, self.owner.variables
        kinds = Surface | Texture | MappedArray
        surfaces = {own: value for own, value in {**variables, **args}.items() if isinstance(value, kinds)}
        pointers = {own.name for own in self.pointers}
        arrays = {MEMORY, TABLE} | pointers | interface.constants.keys() | interface.variables.keys()
        objects = {own.name for own in self.parameters}
        for own in self.parameters:
            if is_tensor_map(own.type) and not isinstance(args.get(own.name), MappedArray):
                raise LaunchError(f"{own.name} is a tensor map: give st.tensor_map(array, box=...)")
        used = {}
        for name, type in ((name, own.type) for name, own in interface.signature.parameters.items()):
            if name not in arrays and (isinstance(type, Array) or (type is U64 and name in surfaces)):
                if name in objects and name not in surfaces:
                    raise LaunchError(f"{name} is a texture or surface: give st.Texture(array) or st.Surface(array)")
                if name not in surfaces:
                    raise LaunchError(f'{name} is a texture or surface: set variables["{name}"] = st.Texture(array)')
                used[name] = surfaces[name]
            elif name in surfaces:
                raise LaunchError(f"{name} is neither a texture nor a surface: give an array or a number")
        return used

    def with_aliases(
        self, aliases: Mapping[str, Alias], textures: Mapping[str, LaunchForm] = MappingProxyType({})
    ) -> CudaKernel:
        """Return the kernel for pointers into the memory of other parameters and for forms of textures, created once."""
        if aliases == dict(self.aliases) and not textures:
            return self
        key = (
            tuple(sorted(aliases.items(), key=lambda item: item[0])),
            tuple(sorted(textures.items(), key=lambda item: item[0])),
        )
        if key not in self._variants:
            self._variants[key] = CudaKernel(self.owner, self.__name__, self.declaration, *key)
        return self._variants[key]

    @property
    def takes_addresses(self) -> bool:
        """Whether its pointers are addresses, and `allocations.MEMORY` is a parameter: it follows pointers in global memory."""
        return MEMORY in self.interface.signature.parameters

    # -------------------------------------------------------------- protocol
    def signature(self) -> Signature:
        return self.interface.signature

    @property
    def defaults(self) -> Mapping[str, Any]:
        """The contents of variables outside of functions."""
        variables, interface = self.owner.variables, self.interface
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
        contents = {name: consts[name] for name in self.interface.constants}
        if not contents:
            return self._program
        from .lowering import with_contents  # late, as below

        return with_contents(self._lowered, contents)

    def declared_bytes(self, space: str) -> int:
        """Return the bytes of the arrays that the kernel declares in shared, local or constant memory."""
        return declared_bytes(self._program, space)

    def own_code(self, consts: Mapping[str, Any]) -> CudaText | None:
        """Return the text that contains the kernel; None for a kernel with `__device__` variables, textures, surfaces or pointers in global
        memory, and for structs whose pointers are null or share memory."""
        interface = self.interface
        if interface.variables or self.textures or self.takes_addresses:
            return None
        constants = {
            row.symbol: contents
            for name, row in interface.constants.items()
            if (contents := np.array(consts[name], split(row.element)[0].dtype).tobytes()) != row.contents
        }  # a constant that the program does not change may have no symbol in compiled code
        aliases, parameters = dict(self.aliases), interface.signature.parameters
        if any(
            own.name in aliases or own.name not in parameters
            for p in self.parameters
            if not p.is_address
            for own in p.pointers
        ):
            return None
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
            parameter_type = self.interface.signature.parameters.get(alias.parameter or "")
            has_memory = parameter_type is not None and isinstance(parameter_type.type, Array)
            pointer = ((0, str(alias.parameter)),) if has_memory else ()
            return OwnArgument(8, pointer, alias.offset, alias.parameter is None)
        contents = tuple((offset, components(name, path)) for path, _, offset in source_leaves(type))
        return OwnArgument(source_size(type), contents)

    def digest(self) -> str:
        return sha256(
            repr((self.owner.digest, self.declaration.symbol, self.aliases, self.textures)).encode()
        ).hexdigest()

    # -------------------------------------------------------------- the kernel's program
    @cached_property
    def interface(self) -> HostInterface:
        return disk_cache.cached_object(f"interface {self.digest()}", lambda: self._lowered.interface)

    @cached_property
    def _program(self) -> ir.Program:
        """The program with the initial contents of its variables."""
        return disk_cache.cached_object(f"program {self.digest()}", lambda: self._lowered.program)

    @cached_property
    def _lowered(self) -> LoweredKernel:
        from .lowering import lower  # late: most processes find a compiled program on the disk

        text = self.owner.compiled
        return lower(
            self.__name__, text, text.functions[self.declaration.symbol], dict(self.aliases), dict(self.textures)
        )


def pointers_of(parameter: HostParameter, value: Any) -> dict[str, Any]:
    """Return the values of the pointers in an argument, by the names of `HostParameter.pointers`. value: of a struct as `bind` takes it."""
    results = {}
    for path, leaf, _ in source_leaves(parameter.type):
        if isinstance(leaf, PointerTo):
            own = value if not path else _struct(parameter.name, parameter.type, value)  # type: ignore[arg-type]
            for key in path:
                own = own[int(key)] if key.isdigit() else getattr(own, key)
            results[components(parameter.name, path)] = own
    return results


def _struct(name: str, type: Record | ArrayOf, value: Any) -> Any:
    """Return an argument for a struct passed by value: a tuple with names. value: with items, in order or by name, or with
    attributes."""
    if isinstance(type, ArrayOf):
        items, kinds = list(value), dict.fromkeys(map(str, range(type.count or 0)), type.element)
        if len(items) != len(kinds):
            raise LaunchError(f"{name} is {type}: give {len(kinds)} items, not {shown(value)}")
        return tuple(_item(name, kind, item) for kind, item in zip(kinds.values(), items, strict=True))
    kinds = dict(_members(type))
    if isinstance(value, np.ndarray) and value.dtype.names is not None and value.size == 1:
        value = value.reshape(())[()]
    fields = value.dtype.names or () if isinstance(value, np.void) else value if isinstance(value, Mapping) else ()
    if kinds.keys() <= {*fields}:
        items = [value[field] for field in kinds]
    elif isinstance(value, tuple | list | np.ndarray) and len(value) == len(kinds):
        items = list(value)
    elif all(hasattr(value, field) for field in kinds):
        items = [getattr(value, field) for field in kinds]
    else:
        raise LaunchError(f"{name} is {type}: give ({', '.join(kinds)}), not {shown(value)}")
    own = re.sub(r"\W", "_", type.name.rpartition("::")[2]) or "struct"
    named = namedtuple(own, list(kinds), rename=True)  # type: ignore[misc]
    others: tuple[str, ...] = named._fields
    for field, other in zip(kinds, others, strict=True):
        if field != other:  # a keyword of Python
            setattr(named, field, getattr(named, other))
    return named(*(_item(name, kind, item) for kind, item in zip(kinds.values(), items, strict=True)))


def _members(type: Record) -> Iterator[tuple[str, SourceType]]:
    """Yield the fields of a struct, those of its base classes and of members without a name as its own."""
    for name, kind, _ in type.fields:
        if name or not isinstance(kind, Record):
            yield name, kind
        else:
            yield from _members(kind)


def _item(name: str, type: SourceType, value: Any) -> Any:
    return _struct(name, type, value) if isinstance(type, Record | ArrayOf) else value


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

    Raises UnavailableError without clang. Errors of a kernel are raised when it is taken from the result.
    """
    if not isinstance(text, str):
        raise LaunchError(f"text is CUDA C++ as a str, not {shown(text)}")
    caller = sys._getframe(1).f_code.co_filename
    return CudaSource(SourceText.inside(text, caller), options, instances)


def cuda_file(path: str, options: Sequence[str] = (), instances: Sequence[str] = ()) -> CudaSource:
    """Return the kernels of a CUDA C++ file, as `cuda_source`. Raises SimtbedError for an unreadable file."""
    return CudaSource(SourceText.of_file(str(path)), options, instances)
