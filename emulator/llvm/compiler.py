"""LLVM text to machine code that Python can call: compiled with llvmlite, kept on disk, linked into the process."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from .. import disk_cache

_LOCK = threading.Lock()
"""LLVM compiles and links for one thread at a time."""
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
    """Linked code. `address` is the function's; the code lives as long as this object. uses: helpers that it calls."""

    address: int
    library: Any
    uses: tuple[Library, ...] = ()


@dataclass(frozen=True)
class ModuleText:
    """A module as text. helpers: functions that it calls, by name; each is compiled by itself and shared by all modules
    that call the same text. declarations: of LLVM's own functions. rest: what every text ends with."""

    own: str
    helpers: Mapping[str, str]
    declarations: Sequence[str]
    rest: str

    def main(self) -> str:
        """The module without its helpers."""
        return self._complete(self.own, self.called(self.own))

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
    target: Target | None = None,
    passes: Passes = OPTIMISED,
) -> tuple[bytes, Library]:
    """Callable code and what was kept beside it, from the cache on disk where they are there.

    key: everything the code depends on but the compiler and its target; None if that is not known: then nothing is kept.
    make: what to keep beside the code, and the module. target: another processor that this one can act as; the host by
    default.
    """
    target = target or host()
    kept = None if key is None else compiled_before(key, entry, target, passes)
    if kept is not None:
        return kept
    metadata, module = make()
    with _LOCK:
        digests: dict[str, str] = {}
        for name in module.called(module.own):
            _compile_helper(module, name, target, passes, digests)
        code = object_code(module.main(), target, passes)
        if key is not None:
            text = json.dumps({"metadata": metadata.hex(), "helpers": digests}).encode()
            disk_cache.save(_name(key, target, passes), len(text).to_bytes(8, "little") + text + code)
        return metadata, _link(code, entry, {name: _HELPERS[digest] for name, digest in digests.items()})


def compiled_before(
    key: Sequence[str], entry: str, target: Target | None = None, passes: Passes = OPTIMISED
) -> tuple[bytes, Library] | None:
    """What `compiled` gives, where the disk has it whole."""
    found = disk_cache.load(_name(key, target or host(), passes))
    if found is None:
        return None
    header, code = _split(found)
    with _LOCK:
        helpers = {name: _helper(digest) for name, digest in header["helpers"].items()}
        if not all(helpers.values()):
            return None
        return bytes.fromhex(header["metadata"]), _link(code, entry, helpers)


def _name(parts: Sequence[str], target: Target, passes: Passes) -> str:
    known = (*parts, llvmlite.__version__, target.cpu, target.features, repr(passes))
    return hashlib.sha256("\0".join(known).encode()).hexdigest() + ".o"


def _split(kept: bytes) -> tuple[dict[str, Any], bytes]:
    start = 8 + int.from_bytes(kept[:8], "little")
    return json.loads(kept[8:start]), kept[start:]


def _helper(digest: str) -> Library | None:
    """A helper that was compiled before, with those that it calls; None where the disk does not have it any more."""
    if digest not in _HELPERS:
        found = disk_cache.load(digest)
        if found is None:
            return None
        header, code = _split(found)
        called = {name: _helper(other) for name, other in header["helpers"].items()}
        if not all(called.values()):
            return None
        _HELPERS[digest] = _link(code, header["name"], called)
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
        header = json.dumps({"name": name, "helpers": called}).encode()
        disk_cache.save(digest, len(header).to_bytes(8, "little") + header + code)
        _HELPERS[digest] = _link(code, name, {other: _HELPERS[known] for other, known in called.items()})


def _link(code: bytes, entry: str, helpers: Mapping[str, Library | None]) -> Library:
    global _LINKED
    _LINKED += 1
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(entry)
    uses = {name: helper for name, helper in helpers.items() if helper is not None}
    for name, helper in uses.items():
        builder.import_symbol(name, helper.address)
    library = builder.link(_linker(), f"module_{_LINKED}")
    return Library(library[entry], library, tuple(uses.values()))
