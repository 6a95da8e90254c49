"""LLVM text to machine code that Python can call: compiled with llvmlite, kept on disk, linked into the process."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
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


OF_KERNELS = Passes(1, vectorise=False)
"""Kernels are vectors of lanes as they are printed."""


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
    return llvm.create_lljit_compiler(_machine(host(), OF_KERNELS.level), use_jit_link=True)


@dataclass(frozen=True)
class Library:
    """Linked code. `address` is the function's; the code lives as long as this object."""

    address: int
    library: Any


def compiled(
    key: Sequence[str] | None,
    make: Callable[[], tuple[bytes, str]],
    entry: str,
    target: Target | None = None,
    passes: Passes = OF_KERNELS,
) -> tuple[bytes, Library]:
    """Callable code and what was kept beside it, from the cache on disk where they are there.

    key: everything the code depends on but the compiler and its target; None if that is not known: then nothing is kept.
    make: what to keep beside the code, and the text of its module. target: another processor that this one can act as;
    the host by default.
    """
    global _LINKED
    target = target or host()
    parts = (*(key or ()), llvmlite.__version__, target.cpu, target.features, repr(passes))
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest() + ".o"
    kept = None if key is None else disk_cache.load(name)
    if kept is None:
        metadata, text = make()
        with _LOCK:
            kept = len(metadata).to_bytes(8, "little") + metadata + object_code(text, target, passes)
        if key is not None:
            disk_cache.save(name, kept)
    start = 8 + int.from_bytes(kept[:8], "little")
    with _LOCK:
        _LINKED += 1
        builder = llvm.JITLibraryBuilder().add_object_img(kept[start:]).add_current_process().export_symbol(entry)
        library = builder.link(_linker(), f"kernel_{_LINKED}")
    return kept[8:start], Library(library[entry], library)
