"""LLVM text to machine code that Python can call: compiled with llvmlite, kept on disk, linked into the process."""

from __future__ import annotations

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

from .. import disk_cache
from ..ir import library as functions
from ..ir.library import PREFIX

Beside = TypeVar("Beside")
"""What a caller keeps beside its code."""
_LOCK = threading.RLock()
"""LLVM compiles and links for one thread at a time; linking may compile a function of the library."""
_LINKED = 0


@dataclass(frozen=True)
class Target:
    """A processor to compile for."""

    cpu: str
    features: str


@cache
def host() -> Target:
    """The processor this runs on."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return Target(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


@dataclass(frozen=True)
class Passes:
    """What LLVM does to a module: the level of its pipeline, and whether it makes vectors of loops."""

    level: int
    vectorise: bool


OPTIMISED = Passes(1, vectorise=False)
"""Of kernels, which are vectors of lanes as they are printed."""
QUICK = Passes(0, vectorise=False)
"""Of kernels that run for less time than it takes to optimise them."""
LOOPS = Passes(2, vectorise=True)
"""Of native functions, which loop over arrays."""
NATIVE = "native"
"""The name of a native function in its module. Arrays are pointers; a bool is an i8."""


def _machine(target: Target, level: int) -> Any:
    host()
    triple = llvm.Target.from_default_triple()
    return triple.create_target_machine(
        cpu=target.cpu, features=target.features, opt=level, reloc="pic", codemodel="default"
    )


def object_code(text: str, target: Target, passes: Passes) -> bytes:
    """Compile a module."""
    machine = _machine(target, passes.level)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(passes.level)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = passes.vectorise
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


@cache
def _linker() -> Any:
    return llvm.create_lljit_compiler(_machine(host(), OPTIMISED.level), use_jit_link=True)


@dataclass(frozen=True)
class Library:
    """Linked code. `address` is the function's; the code lives as long as this object. uses: what it calls."""

    address: int
    library: Any
    uses: tuple[functions.Code, ...] = ()


@dataclass(frozen=True)
class ModuleText:
    """A module as text. helpers: functions that it calls, by name; each is compiled by itself and shared by all modules
    that call the same text. declarations: of LLVM's own functions and of those of the library. rest: what every text
    ends with."""

    own: str
    helpers: Mapping[str, str]
    declarations: Sequence[str]
    rest: str

    def main(self) -> str:
        """The module without its helpers."""
        return self._complete(self.own, self.called(self.own))

    @property
    def library(self) -> list[str]:
        """The functions of the library that it calls."""
        return sorted({name for name in _CALLED.findall(self.own) if name.startswith(PREFIX)})

    def helper(self, name: str) -> str:
        """A helper as a module, visible to those that call it."""
        return self._complete(self.helpers[name].replace("define internal", "define", 1), self.calls(name))

    def called(self, text: str) -> list[str]:
        """The helpers that a text names."""
        names = set(_CALLED.findall(text))
        return [name for name in self.helpers if name in names]

    def calls(self, name: str) -> list[str]:
        """The helpers that a helper calls."""
        return [other for other in self.called(self.helpers[name]) if other != name]

    def _complete(self, text: str, called: Sequence[str]) -> str:
        headers = [self.helpers[name].partition(" {\n")[0] for name in called]
        helpers = [header.replace("define internal", "declare", 1) for header in headers]
        names = set(_CALLED.findall(text))  # no others: the same helper is the same text in every module
        own = [line for line in self.declarations if names.issuperset(_CALLED.findall(line))]
        return "\n".join([text, *helpers, *own, self.rest]) + "\n"


_CALLED = re.compile(r"@([\w.]+)\(")
_HELPERS: dict[str, Library] = {}
"""Helpers of this process by their digest."""


def compiled(
    key: Sequence[str] | None,
    make: Callable[[], tuple[bytes, ModuleText]],
    entry: str,
    decode: Callable[[bytes], Beside],
    target: Target | None = None,
    passes: Passes = OPTIMISED,
) -> tuple[Beside, Library]:
    """Callable code and what was kept beside it, from the cache on disk where they are there.

    key: everything the code depends on but the compiler and its target; None if that is not known: then nothing is kept.
    make: what to keep beside the code, and the module. decode: reads the former.
    target: another processor that this one can act as; the host by default.
    """
    target = target or host()
    kept = None if key is None else compiled_before(key, entry, decode, target, passes)
    if kept is not None:
        return kept
    metadata, module = make()
    with _LOCK:
        digests: dict[str, str] = {}
        for name in module.called(module.own):
            _compile_helper(module, name, target, passes, digests)
        code = object_code(module.main(), target, passes)
        if key is not None:
            header = {"metadata": metadata.hex(), "helpers": digests, "library": module.library}
            disk_cache.save(_name(key, target, passes), _joined(header, code))
        called = {name: _HELPERS[digest] for name, digest in digests.items()}
        return decode(metadata), _link(code, entry, called, module.library)


def compiled_before(
    key: Sequence[str],
    entry: str,
    decode: Callable[[bytes], Beside],
    target: Target | None = None,
    passes: Passes = OPTIMISED,
) -> tuple[Beside, Library] | None:
    """What `compiled` gives, where the disk has it whole."""

    def read(kept: bytes) -> tuple[Beside, Library]:
        header, code = _split(kept)
        return decode(bytes.fromhex(header["metadata"])), _link(code, entry, _kept_helpers(header), header["library"])

    with _LOCK:
        return disk_cache.load(_name(key, target or host(), passes), read)


def _name(parts: Sequence[str], target: Target, passes: Passes) -> str:
    known = (*parts, llvmlite.__version__, target.cpu, target.features, repr(passes))
    return hashlib.sha256("\0".join(known).encode()).hexdigest() + ".o"


def _joined(header: Mapping[str, Any], code: bytes) -> bytes:
    text = json.dumps({**header, "code": hashlib.blake2b(code).hexdigest()}).encode()
    return len(text).to_bytes(8, "little") + text + code


def _split(kept: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the code. Raises ValueError where the code is another one: LLVM ends the process over some of those."""
    start = 8 + int.from_bytes(kept[:8], "little")
    header, code = json.loads(kept[8:start]), kept[start:]
    if header["code"] != hashlib.blake2b(code).hexdigest():
        raise ValueError("this is not the code that was kept")
    return header, code


def _kept_helpers(header: Mapping[str, Any]) -> dict[str, Library]:
    """The helpers that a kept module calls. Raises LookupError where the disk does not have one any more."""
    found = {name: _helper(digest) for name, digest in header["helpers"].items()}
    there = {name: helper for name, helper in found.items() if helper is not None}
    if len(there) < len(found):
        raise LookupError("a helper is gone")
    return there


def _helper(digest: str) -> Library | None:
    """A helper that was compiled before, with those that it calls; None where the disk does not have it any more."""

    def read(kept: bytes) -> Library:
        header, code = _split(kept)
        return _link(code, header["name"], _kept_helpers(header))

    if digest not in _HELPERS:
        found = disk_cache.load(digest, read)
        if found is None:
            return None
        _HELPERS[digest] = found
    return _HELPERS[digest]


def _compile_helper(module: ModuleText, name: str, target: Target, passes: Passes, digests: dict[str, str]) -> None:
    """Compile and link a helper, unless that was done before, and enter its digest."""
    if name in digests:
        return
    for other in module.calls(name):
        _compile_helper(module, other, target, passes, digests)
    called = {other: digests[other] for other in module.calls(name)}
    text = module.helper(name)
    digests[name] = digest = _name((text, *called.values()), target, passes).replace(".o", ".helper")
    if _helper(digest) is None:
        code = object_code(text, target, passes)
        disk_cache.save(digest, _joined({"name": name, "helpers": called}, code))
        _HELPERS[digest] = _link(code, name, {other: _HELPERS[known] for other, known in called.items()})


def _link(code: bytes, entry: str, helpers: Mapping[str, Library], library: Sequence[str] = ()) -> Library:
    """library: the functions of the library that the code calls."""
    global _LINKED
    uses: dict[str, functions.Code] = dict(helpers)
    uses |= {name: functions.code(name) for name in library}  # one may be compiled and linked now
    _LINKED += 1
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(entry)
    for name, used in uses.items():
        builder.import_symbol(name, used.address)
    linked = builder.link(_linker(), f"module_{_LINKED}")
    return Library(linked[entry], linked, tuple(uses.values()))
