"""The build of a CUDA C++ program by clang: LLVM IR of its kernels, and a shared library of its host code.

Clang, its C++ library and the linker are those of the package ziglang. A build is kept in the cache on disk, with digests of all files
that it read. Known limits: Linux on x86-64.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import llvmlite.binding as llvm

from ... import disk_cache
from ...cuda_cpp import clang
from ...cuda_cpp.header_files import INCLUDED, included
from ...documents import require_file
from ...errors import CompileError, Diagnostic, SimtbedError, UnavailableError
from ...escaping import printable
from ...span import Span
from .declarations import FOLDER, SOURCE_SUFFIXES, c_header, driver_attributes, runtime_header, shim_text

SECONDS = 300
"""Limit of one step of a build: the first link compiles the C++ library."""
_TOOLKIT = (
    "assert.h", "cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h", "driver_types.h", "vector_types.h",
    "vector_functions.h", "device_functions.h", "math_functions.h", "math_constants.h", "host_defines.h", "builtin_types.h",
    "cuda_device_runtime_api.h", "cuda_fp16.h", "cuda_bf16.h", "sm_20_atomic_functions.h", "sm_30_intrinsics.h", "cuda_profiler_api.h",
    "cudaTypedefs.h",
    "cuda_fp16.hpp", "cuda_bf16.hpp", "vector_functions.hpp", "driver_functions.h", "common_functions.h", "channel_descriptor.h",
    "cuda_texture_types.h", "texture_types.h", "texture_fetch_functions.h", "texture_indirect_functions.h", "cuda_surface_types.h",
    "surface_types.h", "surface_functions.h", "surface_indirect_functions.h", "device_atomic_functions.h", "device_double_functions.h",
    "sm_20_intrinsics.h", "sm_32_intrinsics.h", "sm_32_atomic_functions.h", "sm_35_intrinsics.h", "sm_35_atomic_functions.h",
    "sm_60_atomic_functions.h", "sm_61_intrinsics.h", "host_config.h", "cuda_pipeline.h", "cuda_pipeline_primitives.h", "crt/host_config.h",
    "crt/host_defines.h", "crt/device_functions.h", "crt/math_functions.h",
)  # fmt: skip
"""Headers whose declarations precede each text but those in C."""
_LIBRARY_HEADERS = {
    "cublas_v2.h": "cublas.h", "cublas_api.h": "cublas.h", "library_types.h": "cublas.h", "nvToolsExt.h": "nvtx.h",
    "nvtx3/nvToolsExt.h": "nvtx.h",
}  # fmt: skip
"""Files of `headers/` by further names of headers of libraries."""
_OWN_LIBRARIES = {
    f"-l{name}" for name in ("cuda", "cudart", "cudart_static", "cudadevrt", "cublas", "curand", "nvToolsExt", "gomp")
}
"""Libraries without a file: their functions precede each text, or are in its headers."""
_COMMON = (
    "-nocudainc", "-nocudalib", "-nostdinc", "-nostdinc++", "-target", "x86_64-linux-gnu", "-std=c++17", "-O1", "-fno-strict-aliasing",
    "-Wno-everything", "-ferror-limit=20", "-fno-caret-diagnostics", "-fno-color-diagnostics", "-ftemplate-depth=400", "-D_GNU_SOURCE",
    "-x", "cuda",
)  # fmt: skip
_HOST = ("--cuda-host-only", "--cuda-gpu-arch=sm_90", "-fno-sanitize=all", "-fwrapv", "-fPIC", "-c")
"""Overflow wraps, as in the unoptimised code of nvcc."""
_C = (
    "-target", "x86_64-linux-gnu", "-D_GNU_SOURCE", "-c", "-O1", "-fPIC", "-w", "-fwrapv", "-fno-sanitize=all",
    "-fno-caret-diagnostics", "-fno-color-diagnostics", "-Wno-implicit-function-declaration", "-Wno-implicit-int", "-Wno-int-conversion",
    "-Wno-incompatible-pointer-types",
)  # fmt: skip
"""Options of sources in C, which have no kernels. Old C is accepted, as the host compilers of nvcc do."""
_LIBRARY = {
    "__GLIBC_MINOR__": "31", "_LIBCPP_ABI_VERSION": "1", "_LIBCPP_ABI_NAMESPACE": "__1", "_LIBCPP_HAS_THREADS": "1",
    "_LIBCPP_HAS_MONOTONIC_CLOCK": "1", "_LIBCPP_HAS_TERMINAL": "1", "_LIBCPP_HAS_MUSL_LIBC": "0",
    "_LIBCXXABI_DISABLE_VISIBILITY_ANNOTATIONS": "1", "_LIBCPP_DISABLE_VISIBILITY_ANNOTATIONS": "1",
    "_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS": "0", "_LIBCPP_HAS_FILESYSTEM": "1", "_LIBCPP_HAS_RANDOM_DEVICE": "1",
    "_LIBCPP_HAS_LOCALIZATION": "1", "_LIBCPP_HAS_UNICODE": "1", "_LIBCPP_HAS_WIDE_CHARACTERS": "1", "_LIBCPP_HAS_TIME_ZONE_DATABASE": "1",
    "_LIBCPP_PSTL_BACKEND_SERIAL": "1", "_LIBCPP_HARDENING_MODE": "_LIBCPP_HARDENING_MODE_NONE",
    "_LIBCPP_ASSERTION_SEMANTIC_DEFAULT": "_LIBCPP_ASSERTION_SEMANTIC_IGNORE",
}  # fmt: skip
"""Macros with which `zig c++` compiles its C++ library."""
_INCLUDES = (
    "libcxx/include", "libcxxabi/include", "include", "libc/include/x86_64-linux-gnu", "libc/include/x86-linux-gnu",
    "libc/include/generic-glibc", "libc/include/x86-linux-any", "libc/include/any-linux-any",
)  # fmt: skip
_CCCL = "nvidia.cuda_cccl"
"""The package with NVIDIA's headers of CUB, Thrust and libcu++."""
_SHADOWS = {"is_trivially_relocatable.h": "thrust/type_traits/is_trivially_relocatable.h"}
"""Files of `headers/` that replace a header of Thrust."""
_CHANGED = {
    "cuda/__barrier/barrier_block_scope.h": (re.compile(r"^ *_\w+ ~barrier\(\)\s*\{.*?^  \}$", re.MULTILINE | re.DOTALL), ""),
    "cuda/std/__thread/threading_support.h": (re.compile(r"(?<=zero\(\)\)\n\{)"), "while (__max == __max.zero()) if (__f()) return true;"),
}  # fmt: skip
"""Headers of libcu++ with a replaced text: no destructor in shared memory, which clang refuses; a wait without a limit of time is a loop
without a counter, which ends when another thread makes progress."""
_WITHOUT_EFFECT = re.compile(
    r"-O\d?|-g|-G|-w|-v|-m64|-pthread|-fopenmp|-W[\w-]*|-ffast-math|-march=\S+|-lineinfo|--?use_fast_math|--?generate-line-info|-arch=\S+"
    r"|--gpu-architecture=\S+|-gencode=\S+|--generate-code=\S+|-code=\S+|--?(?:extended|expt)-\w[\w-]*|-(?:ftz|prec-div|prec-sqrt|fmad)=\w+"
    r"|--?maxrregcount=?\d*|--ptxas-options=\S+|--compiler-options=\S+|-X\w+=\S+|--?forward-unknown-\S+|--?diag-suppress=\S+|-allow-unsupported-compiler"
)
"""Options of nvcc for code or warnings that the emulator does not have."""
_WITH_WORD = (
    "-Xcompiler", "-Xptxas", "-Xlinker", "-Xcudafe", "-Xnvlink", "-arch", "-gencode", "-code", "-ccbin", "-maxrregcount", "-diag-suppress",
    "--compiler-options", "--ptxas-options", "--gpu-architecture", "--generate-code", "--maxrregcount", "--diag-suppress", "-o",
)  # fmt: skip
"""Such options whose value is the next word."""
_SUFFIX = re.compile(r"__(?:static|intern)__[0-9a-f]{8,16}\b")
_UNDEFINED = re.compile(r"undefined (?:symbol|reference)[^:]*: (.*)")
_CCCL_FILE = re.compile(r"'((?:cub|thrust|cuda|nv)/[^']*)' file not found")
_UNKNOWN = re.compile(
    r"(?:undeclared identifier|unknown type name|no member named) '?(cu[A-Za-z]+[A-Z]\w*|(?:CUBLAS|CURAND)_\w+|thrust|cub)\b"
    r"|'((?:cu(?:sparse|solver|dnn|fft|blas|tensor|file|ti)|nv(?:rtc|ml|jpeg|tx|ToolsExt)|npp|nccl|cutlass"
    r"|cuda_fp[46]|cuda_awbarrier|cuda_gl|cudaGL|GL/|mpi)[\w/.]*)' file not found"
)
"""Errors of what CUDA has and this runtime does not."""
_LEAKED = re.compile(
    r"undefined template 'std::|named '\w+' in namespace 'std'|undeclared identifier|unknown type name"
)
"""Errors of names that another C++ library declares in more of its headers."""


@dataclass(frozen=True)
class Build:
    """A program. modules: the LLVM IR of the kernels of each source. library, shim: contents of the shared libraries."""

    sources: tuple[str, ...]
    modules: tuple[str, ...]
    library: bytes
    shim: bytes


@dataclass(frozen=True)
class Program:
    """The sources and compiler options of a program. options: -I, -D, -U, -std; libraries: -l and -L. relocatable: whether kernels use
    functions and variables of other sources (-rdc=true)."""

    sources: tuple[str, ...]
    options: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    relocatable: bool = False

    @staticmethod
    def of(words: Sequence[str]) -> Program:
        """Return the program of a command line like nvcc's. Raises SimtbedError for other words."""
        sources, options, libraries, relocatable = list[str](), list[str](), list[str](), False
        rest = iter(words)
        for word in rest:
            if word in ("-I", "-D", "-U", "-l", "-L", "-std", "-rdc"):
                word += "=" * (word == "-rdc") + next(rest, "")
            if word.endswith(SOURCE_SUFFIXES) and not word.startswith("-"):
                sources.append(word)
            elif word.startswith(("-I", "-D", "-U", "-std=", "--std=")):
                options.append(word)
            elif word.startswith(("-l", "-L")):
                libraries += [word] * (word not in _OWN_LIBRARIES)
            elif word in ("-rdc=true", "-rdc=false"):
                relocatable = word == "-rdc=true"
            elif word in _WITH_WORD:
                next(rest, "")
            elif not _WITHOUT_EFFECT.fullmatch(word):
                expected = "expected sources, -I, -D, -U, -std, -l, -L or -rdc; write -- before the program's arguments"
                raise SimtbedError(f"{printable(word)}: {expected}")
        for source in sources:
            require_file(source)
        return Program(tuple(sources), tuple(options), tuple(libraries), relocatable)


def built(program: Program, report: Callable[[str], None]) -> Build:
    """Return the build of a program. report: prints a line about a long step.

    Raises CompileError for a text that clang refuses, SimtbedError for a program that does not link, UnavailableError without ziglang.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise UnavailableError("whole CUDA programs run on Linux on x86-64 only")
    inputs = (program, clang.compiler().identity, disk_cache.edition(), os.getcwd(), _headers_digest(), _cccl_folder())
    key = sha256(repr(inputs).encode()).hexdigest()
    read = disk_cache.load(f"{key}.json", lambda data: dict[str, str](json.loads(data)))
    if read is not None and all(_digest(path) == digest for path, digest in read.items()):
        stored = disk_cache.load(f"{_content_key(key, read)}.build", lambda data: _decoded(program, data))
        if stored is not None:
            return stored
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        builder = _Builder(program, Path(folder), report)
        result = builder.build()
        read = {path: digest for path in builder.files() if (digest := _digest(path))}
    disk_cache.save(f"{_content_key(key, read)}.build", _encoded(result))
    disk_cache.save(f"{key}.json", json.dumps(read).encode())
    return result


def _content_key(key: str, read: dict[str, str]) -> str:
    return sha256(f"{key} {sorted(read.items())}".encode()).hexdigest()


def _headers_digest() -> str:
    return sha256(
        "\0".join(path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.h"))).encode()
    ).hexdigest()


def _digest(path: str) -> str:
    """Return a digest of a file, "" for one that cannot be read."""
    try:
        return disk_cache.source_digest(path)
    except OSError:
        return ""


def _cccl_folder() -> Path | None:
    """Return the folder of NVIDIA's headers of CUB, Thrust and libcu++; None where the package is not installed."""
    spec = find_spec(_CCCL) if find_spec("nvidia") else None
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "include"


def _encoded(build: Build) -> bytes:
    contents = [*(module.encode() for module in build.modules), build.library, build.shim]
    return json.dumps([len(part) for part in contents]).encode() + b"\n" + b"".join(contents)


def _decoded(program: Program, data: bytes) -> Build:
    head, _, content = data.partition(b"\n")
    contents, at = [], 0
    for size in json.loads(head):
        contents.append(content[at : at + size])
        at += size
    *modules, library, shim = contents
    return Build(program.sources, tuple(module.decode() for module in modules), library, shim)


def _with_host_symbols(module: str) -> str:
    """Return a module whose static kernels and variables have the symbols of host code: clang adds a suffix, and an external variable."""
    module = _SUFFIX.sub("", module)
    lines = module.split("\n")
    defined = {line.partition(" = ")[0] for line in lines if line.startswith("@") and " = external " not in line}
    return "\n".join(line for line in lines if " = external " not in line or line.partition(" = ")[0] not in defined)


def _linked(modules: Sequence[str]) -> str:
    """Return one module of all. Raises SimtbedError for a symbol that two modules define."""
    first, *others = (llvm.parse_assembly(module) for module in modules if module)
    try:
        for other in others:
            first.link_in(other)
    except RuntimeError as error:
        raise SimtbedError(f"the kernels do not link: {printable(str(error).strip()[:200])}") from None
    return str(first)


class _Builder:
    """One build, with its files in a folder."""

    def __init__(self, program: Program, folder: Path, report: Callable[[str], None]) -> None:
        spec = find_spec("ziglang")
        if spec is None or spec.origin is None:
            raise UnavailableError("whole CUDA programs need ziglang: python -m pip install 'simtbed[cuda-source]'")
        self.program, self.folder, self.report = program, folder, report
        self.zig = Path(spec.origin).with_name("zig")
        cache = disk_cache.cache_folder().folder
        self.zig_cache = folder / "zig" if cache is None else cache / "zig"
        self.cccl = _cccl_folder()
        from ...cuda_cpp.header import device_header  # late: it reads the table of operations

        headers = folder / "include"
        replaced = {"complex"} if self.cccl is None else {"complex", "thrust/complex.h", "cuda/pipeline"}
        names = dict.fromkeys(_TOOLKIT, '#ifndef __cplusplus\n#include "c_runtime.h"\n#endif\n')
        names |= {name: included(name) for name in INCLUDED if name not in replaced}
        files = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.h")}
        names |= {_SHADOWS.get(name, name): text for name, text in files.items()}
        if self.cccl is not None:
            for name, (pattern, own) in _CHANGED.items():
                names[name] = pattern.sub(own, (self.cccl / name).read_text(encoding="utf-8"))
        names |= {name: files[file] for name, file in _LIBRARY_HEADERS.items()}
        self.options, definitions = clang.with_definitions(program.options)
        names |= {
            "simtbed_device.h": device_header(),
            "simtbed_runtime.h": runtime_header(),
            "definitions.h": definitions,
            "driver_attributes.h": driver_attributes(),
            "c_runtime.h": c_header(),
        }
        for name, text in names.items():
            (headers / name).parent.mkdir(parents=True, exist_ok=True)
            (headers / name).write_text(text, encoding="utf-8")

    def build(self) -> Build:
        modules, objects = [], []
        for number, source in enumerate(self.program.sources):
            module, object = self.folder / f"{number}.ll", self.folder / f"{number}.o"
            binary = self.folder / f"{number}.bin"
            binary.write_bytes(b"%d\0" % number)
            objects.append(str(object))
            dependencies = "-MD", "-MF", str(self.folder / f"{number}.d")
            if source.endswith(".c"):
                self._compile(source, object, *dependencies)
                modules.append("")
                continue
            self._compile(source, module, *clang.DEVICE, *dependencies)
            self._compile(source, object, *_HOST, "-Xclang", "-fcuda-include-gpubinary", "-Xclang", str(binary))
            text = module.read_text(encoding="utf-8", errors="replace").replace(f"{self.folder}/include/", "")
            modules.append(_with_host_symbols(text))
        if self.program.relocatable:
            modules = [_linked(modules)] * len(modules)
        shim, shim_source = self.folder / "libsimtbed.so", self.folder / "shim.cu"
        shim_source.write_text(shim_text(), encoding="utf-8")
        self._compile(str(shim_source), self.folder / "shim.o", *_HOST)
        self._link(shim, [str(self.folder / "shim.o"), f"-Wl,-soname,{shim.name}"])
        library = self.folder / "program.so"
        self._link(library, [*objects, f"-L{self.folder}", "-lsimtbed", *self.program.libraries])
        return Build(self.program.sources, tuple(modules), library.read_bytes(), shim.read_bytes())

    def files(self) -> list[str]:
        """Return the user's files that the build read."""
        words = " ".join(path.read_text(errors="replace") for path in self.folder.glob("*.d"))
        names = re.findall(r"(?:\\ |[^\s\\])+", words.replace("\\\n", " "))
        own = {os.path.abspath(name.replace("\\ ", " ")) for name in names if not name.endswith(":")}
        own |= {os.path.abspath(source) for source in self.program.sources}
        packages = tuple(str(folder) for folder in (self.folder, self.zig.parent, self.cccl) if folder)
        return [path for path in own if not path.startswith(packages)]

    def _compile(self, source: str, output: Path, *how: str) -> None:
        """Compile a source. Raises CompileError."""
        library, include = self.zig.parent / "lib", self.folder / "include"
        if source.endswith(".c"):
            own = [word for word in self.options if not word.startswith(("-std", "--std"))]
            command = ["cc", *_C, *how, *own, f"-idirafter{include}", "-include", str(include / "definitions.h")]
        else:
            includes = (f"-isystem{library / name}" for name in _INCLUDES)
            macros = (f"-D{name}={value}" for name, value in _LIBRARY.items())
            command = ["clang", *_COMMON, *how, *macros, f"-isystem{include}", *includes, *self.options]
            command += [f"-isystem{self.cccl}"] * (self.cccl is not None)
            command += ["-include", "program.h", "-include", "definitions.h"]
        result = self._run([str(self.zig), *command, source, "-o", str(output)])
        if result.returncode and command[0] == "clang" and _LEAKED.search(result.stderr):
            again = self._run([str(self.zig), *command, "-include", "leaked.h", source, "-o", str(output)])
            result = result if again.returncode else again
        if result.returncode:
            raise self._refused(source, result.stderr)

    def _refused(self, source: str, messages: str) -> Exception:
        """Return the errors of the compiler; that of a function that is not emulated, by its name."""
        errors = []
        for match in filter(None, map(clang.MESSAGE.fullmatch, messages.splitlines())):
            span = Span(match[1], int(match[2]), int(match[3]), int(match[2]), int(match[3]) + 1)
            if self.cccl is None and (missing := _CCCL_FILE.search(match[4])):
                return UnavailableError(
                    f"{printable(match[1])}:{match[2]}: {missing[1]} is in nvidia-cuda-cccl-cu12, which is not installed: "
                    "python -m pip install 'simtbed[cuda-source]'"
                )
            if unknown := _UNKNOWN.search(match[4]):
                name = unknown[1] or unknown[2]
                return UnavailableError(f"{printable(match[1])}:{match[2]}: {name} is not emulated")
            errors.append(Diagnostic("compile", match[4], span))
        if not errors:
            last = messages.strip().splitlines()[-1:] or ["no message"]
            return SimtbedError(f"{printable(source)}: the compiler ended: {printable(last[0][:200])}")
        return CompileError(errors)

    def _link(self, output: Path, inputs: list[str]) -> None:
        """Link a shared library. Raises UnavailableError for functions of no library."""
        if not self.zig_cache.exists():
            self.report("simtbed: compiling the C++ library, once (1 to 2 minutes)")
        command = [str(self.zig), "c++", "-target", "x86_64-linux-gnu", "-shared", "-fPIC", "-fno-sanitize=all"]
        result = self._run([*command, "-Wl,-z,defs", *inputs, "-o", str(output)])
        if result.returncode:
            if names := list(dict.fromkeys(name.strip() for name in _UNDEFINED.findall(result.stderr))):
                raise UnavailableError(f"the program does not link: {printable(', '.join(names[:5]))} not found")
            last = result.stderr.strip().splitlines()[-1:] or ["no message"]
            raise SimtbedError(f"the program does not link: {printable(last[0][:200])}")

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        environment = dict(os.environ) | {"LC_ALL": "C.UTF-8", "TMPDIR": str(self.folder)}
        environment |= dict.fromkeys(("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"), str(self.zig_cache))
        try:
            return subprocess.run(
                command, capture_output=True, text=True, errors="replace", env=environment, timeout=SECONDS,
                stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise SimtbedError(f"the build of the program was ended after {SECONDS} s") from None
