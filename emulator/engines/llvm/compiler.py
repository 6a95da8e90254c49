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

from ...runtime import disk_cache

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


SPEED = 1
"""The level of LLVM's pass pipeline."""


def _machine(target: Target) -> Any:
    host()
    triple = llvm.Target.from_default_triple()
    return triple.create_target_machine(
        cpu=target.cpu, features=target.features, opt=1, reloc="pic", codemodel="default"
    )


def object_code(text: str, target: Target) -> bytes:
    """Compile a module."""
    machine = _machine(target)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(SPEED)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


@cache
def _linker() -> Any:
    return llvm.create_lljit_compiler(_machine(host()), use_jit_link=True)


@dataclass(frozen=True)
class Library:
    """Linked code. `address` is the function's; the code lives as long as this object."""

    address: int
    library: Any


def compiled(
    key: Sequence[str], make: Callable[[], tuple[bytes, str]], entry: str, target: Target | None = None
) -> tuple[bytes, Library]:
    """Callable code and what was kept beside it, from the cache on disk where they are there.

    key: everything the code depends on but the compiler and its target. make: what to keep beside the code, and the
    text of its module. target: another processor that this one can act as; the host by default.
    """
    global _LINKED
    target = target or host()
    parts = (*key, llvmlite.__version__, target.cpu, target.features, str(SPEED))
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest() + ".o"
    kept = disk_cache.load(name)
    if kept is None:
        metadata, text = make()
        with _LOCK:
            kept = len(metadata).to_bytes(8, "little") + metadata + object_code(text, target)
        disk_cache.save(name, kept)
    start = 8 + int.from_bytes(kept[:8], "little")
    with _LOCK:
        _LINKED += 1
        builder = llvm.JITLibraryBuilder().add_object_img(kept[start:]).add_current_process().export_symbol(entry)
        library = builder.link(_linker(), f"kernel_{_LINKED}")
    return kept[8:start], Library(library[entry], library)
