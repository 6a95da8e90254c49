"""LLVM IR to callable machine code: compiled by llvmlite, cached on disk, linked into the process."""

import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import llvmlite
import llvmlite.binding as llvm
from llvmlite.binding import ffi

from .. import disk_cache
from ..forking import hold_at_fork
from ..ir import library as functions
from ..ir.library import PREFIX

Metadata = TypeVar("Metadata")
"""Metadata stored with the code by a caller."""
_LOCK = threading.RLock()
"""LLVM compiles and links on one thread at a time; linking may compile a library function."""
hold_at_fork(_LOCK)
hold_at_fork(getattr(ffi.lib, "_lock", _LOCK))  # also taken outside of ours, by the destructors of LLVM's objects
_LINKED = 0


@dataclass(frozen=True)
class Target:
    """A processor to compile for."""

    cpu: str
    features: str


@cache
def host() -> Target:
    """Return the processor of this machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return Target(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


@dataclass(frozen=True)
class Passes:
    """LLVM optimisations of a module: pipeline level, and loop vectorisation. promote: stack slots become registers at level 0."""

    level: int
    vectorise: bool
    promote: bool = False


OPTIMISED = Passes(1, vectorise=False)
"""For kernels: their text is vectorised over lanes already."""
QUICK = Passes(0, vectorise=False)
"""For kernels with run times below their optimisation time."""
PROMOTED = Passes(0, vectorise=False, promote=True)
"""For long code that runs a few thousand times: compiled ten times faster than OPTIMISED."""
LOOPS = Passes(2, vectorise=True)
"""For native functions: loops over arrays."""
NATIVE = "native"
"""Name of a native function in its module. Arrays are pointers; a bool is an i8."""


def _machine(target: Target, level: int) -> Any:
    host()
    triple = llvm.Target.from_default_triple()
    return triple.create_target_machine(
        cpu=target.cpu, features=target.features, opt=level, reloc="pic", codemodel="default"
    )


def object_code(text: str, target: Target, passes: Passes) -> bytes:
    """Compile a module to object code."""
    machine = _machine(target, passes.level)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(passes.level)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = passes.vectorise
    builder = llvm.create_pass_builder(machine, options)
    manager = builder.getModulePassManager()
    if passes.promote:
        manager.add_sroa_pass()
    manager.run(module, builder)
    return bytes(machine.emit_object(module))


@cache
def _linker() -> Any:
    return llvm.create_lljit_compiler(_machine(host(), OPTIMISED.level), use_jit_link=True)


@dataclass(frozen=True)
class Library:
    """Linked code. address: of the function; valid while this object lives. uses: called code."""

    address: int
    library: Any
    uses: tuple[functions.Code, ...] = ()


@dataclass(frozen=True)
class ModuleText:
    """A module as text.

    helpers: called functions by name; each is compiled separately and shared by all modules with the same helper
    text. declarations: of LLVM intrinsics and library functions. rest: the common end of all texts.
    """

    own: str
    helpers: Mapping[str, str]
    declarations: Sequence[str]
    rest: str

    def main(self) -> str:
        """Return the module without its helpers."""
        return self._complete(self.own, self.called(self.own))

    @property
    def library(self) -> list[str]:
        """Names of the called library functions."""
        return sorted({name for name in _CALLED.findall(self.own) if name.startswith(PREFIX)})

    def helper(self, name: str) -> str:
        """Return a helper as a module, with external linkage."""
        return self._complete(self.helpers[name].replace("define internal", "define", 1), self.calls(name))

    def called(self, text: str) -> list[str]:
        """Return the helpers named in a text."""
        names = set(_CALLED.findall(text))
        return [name for name in self.helpers if name in names]

    def calls(self, name: str) -> list[str]:
        """Return the helpers called by a helper."""
        return [other for other in self.called(self.helpers[name]) if other != name]

    def _complete(self, text: str, called: Sequence[str]) -> str:
        headers = [self.helpers[name].partition(" {\n")[0] for name in called]
        helpers = [header.replace("define internal", "declare", 1) for header in headers]
        names = set(_CALLED.findall(text))  # no others: a helper has the same text in every module
        own = [line for line in self.declarations if names.issuperset(_CALLED.findall(line))]
        return "\n".join([text, *helpers, *own, self.rest]) + "\n"


_CALLED = re.compile(r"@([\w.]+)\(")
_HELPERS: dict[str, Library] = {}
"""Linked helpers of this process by digest."""


MAX_RECENT = 64
_RECENT: dict[bytes, Library] = {}
"""Recently linked code by digest, the latest last."""


def compiled(
    key: Sequence[str] | None,
    make: Callable[[], tuple[bytes, ModuleText]],
    entry: str,
    decode: Callable[[bytes], Metadata],
    target: Target | None = None,
    passes: Passes = OPTIMISED,
) -> tuple[Metadata, Library]:
    """Return the metadata and the callable code of a module, from the disk cache if available.

    key: the code's dependencies except compiler and target; None for no caching. make: returns the metadata and the
    module. decode: reads the metadata. target: another processor supported by this one; the host by default.
    """
    target = target or host()
    cached = None if key is None else load_compiled(key, entry, decode, target, passes)
    if cached is not None:
        return cached
    metadata, module = make()
    with _LOCK:
        digests: dict[str, str] = {}
        for name in module.called(module.own):
            _compile_helper(module, name, target, passes, digests)
        code = object_code(module.main(), target, passes)
        if key is not None:
            header = {"metadata": metadata.hex(), "helpers": digests, "library": module.library}
            disk_cache.save(_name(key, target, passes), _pack(header, code))
        called = {name: _HELPERS[digest] for name, digest in digests.items()}
        return decode(metadata), _link(code, entry, called, module.library)


def load_compiled(
    key: Sequence[str],
    entry: str,
    decode: Callable[[bytes], Metadata],
    target: Target | None = None,
    passes: Passes = OPTIMISED,
) -> tuple[Metadata, Library] | None:
    """Return the result of `compiled` if the disk cache has all of it, else None."""

    def read(data: bytes) -> tuple[Metadata, Library]:
        header, code = _unpack(data)
        return decode(bytes.fromhex(header["metadata"])), _link(code, entry, _cached_helpers(header), header["library"])

    with _LOCK:
        return disk_cache.load(_name(key, target or host(), passes), read)


def _name(key: Sequence[str], target: Target, passes: Passes) -> str:
    inputs = (*key, llvmlite.__version__, target.cpu, target.features, repr(passes))
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest() + ".o"


def _pack(header: Mapping[str, Any], code: bytes) -> bytes:
    text = json.dumps({**header, "code": hashlib.blake2b(code).hexdigest()}).encode()
    return len(text).to_bytes(8, "little") + text + code


def _unpack(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return header and code. Raises ValueError if the code differs from its digest: LLVM may end the process on damaged code."""
    start = 8 + int.from_bytes(data[:8], "little")
    header, code = json.loads(data[8:start]), data[start:]
    if header["code"] != hashlib.blake2b(code).hexdigest():
        raise ValueError("this is not the code that was kept")
    return header, code


def _cached_helpers(header: Mapping[str, Any]) -> dict[str, Library]:
    """Return the helpers called by a cached module. Raises LookupError if one is missing from the disk."""
    helpers = {name: _helper(digest) for name, digest in header["helpers"].items()}
    available = {name: helper for name, helper in helpers.items() if helper is not None}
    if len(available) < len(helpers):
        raise LookupError("a helper is missing from the cache")
    return available


def _helper(digest: str) -> Library | None:
    """Return a helper compiled earlier, with the helpers it calls; None if it is missing from the disk."""

    def read(data: bytes) -> Library:
        header, code = _unpack(data)
        return _link(code, header["name"], _cached_helpers(header))

    if digest not in _HELPERS:
        loaded = disk_cache.load(digest, read)
        if loaded is None:
            return None
        _HELPERS[digest] = loaded
    return _HELPERS[digest]


def _compile_helper(module: ModuleText, name: str, target: Target, passes: Passes, digests: dict[str, str]) -> None:
    """Compile and link a helper, unless it is linked already, and record its digest."""
    if name in digests:
        return
    for other in module.calls(name):
        _compile_helper(module, other, target, passes, digests)
    called = {other: digests[other] for other in module.calls(name)}
    text = module.helper(name)
    digests[name] = digest = _name((text, *called.values()), target, passes).replace(".o", ".helper")
    if _helper(digest) is None:
        code = object_code(text, target, passes)
        disk_cache.save(digest, _pack({"name": name, "helpers": called}, code))
        _HELPERS[digest] = _link(code, name, {other: _HELPERS[digest_of] for other, digest_of in called.items()})


def _link(code: bytes, entry: str, helpers: Mapping[str, Library], library: Sequence[str] = ()) -> Library:
    """Link object code. library: names of the called library functions.

    Code that was linked recently is not linked again: LLVM does not free all memory of unlinked code.
    """
    global _LINKED
    digest = hashlib.blake2b(
        repr((entry, *((name, used.address) for name, used in helpers.items()), *library)).encode() + code
    ).digest()
    if (linked := _RECENT.pop(digest, None)) is not None:
        _RECENT[digest] = linked
        return linked
    uses: dict[str, functions.Code] = dict(helpers)
    uses |= {name: functions.code(name) for name in library}  # this may compile and link one
    _LINKED += 1
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(entry)
    for name, used in uses.items():
        builder.import_symbol(name, used.address)
    module = builder.link(_linker(), f"module_{_LINKED}")
    _RECENT[digest] = linked = Library(module[entry], module, tuple(uses.values()))
    if len(_RECENT) > MAX_RECENT:
        del _RECENT[next(iter(_RECENT))]
    return linked
