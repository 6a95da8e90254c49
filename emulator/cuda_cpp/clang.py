"""clang in a child process: a CUDA C++ text to LLVM IR, with limits of time, memory and files.

The compiler reads only the text, the user's files included by it, and those of `headers/`. A crash or a timeout of the compiler is one
error.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from llvmlite.binding import llvm_version_info

from ..errors import SimtbedError, UnavailableError
from ..escaping import printable

ROOT = "/simtbed"
"""Folder of the compiler's input files."""
SOURCE = f"{ROOT}/source/simtbed_text.cu"
HEADER = f"{ROOT}/include/simtbed_device.h"
ZIGLANG = "0.17."
"""Versions of ziglang with clang 22. llvmlite 0.50 reads its LLVM IR."""
MIN_VERSION, MIN_LLVM = 20, 22
SECONDS, KIBIBYTES, BLOCKS = 10, 4_000_000, 400_000
"""Limits of the compiler: processor time, memory, and the size of its output in blocks of 512 bytes."""
MAX_WAIT = 300
"""Seconds until a compiler is ended that other processes keep from its processor time."""
DEVICE = (
    "--cuda-device-only", "--cuda-gpu-arch=sm_90", "-fgpu-rdc", "-S", "-emit-llvm", "-O1", "-Xclang", "-disable-llvm-passes",
    "-Xclang", "-debug-info-kind=standalone", "-fno-discard-value-names", "-ffp-contract=off", "-fno-strict-aliasing",
    "-fno-delete-null-pointer-checks",
)  # fmt: skip
"""Options of the code of kernels. It is that of -O1 before LLVM's passes: `llvmir.optimising` runs those that keep the accesses of each
statement."""
ARGUMENTS = (
    "-x", "cuda", *DEVICE, "-nocudainc", "-nocudalib", "-nostdinc", "-nostdinc++", "-target", "x86_64-linux-gnu", "-std=c++17",
    "-fno-exceptions", "-Wno-everything", "-Werror=uninitialized", "-Wno-sometimes-uninitialized", "-ferror-limit=0",
    "-fno-caret-diagnostics", "-fno-color-diagnostics", "-ftemplate-depth=400", "-isystem", f"{ROOT}/include", "-include", HEADER,
)  # fmt: skip
MACRO_OPTIONS = ("-D", "-U")
USED_OPTIONS = (*MACRO_OPTIONS, "-std=", "--std=")
"""Options of nvcc that change the meaning of a text. Others, such as `-O3` and `--use_fast_math`, have no effect here."""
_ASSEMBLY = re.compile(r'\b(?:asm|__asm__|__asm)\b\s*(?:(?:volatile|__volatile__)\s*)?\(\s*(?:"(?:\\.|[^"\\])*"\s*)+')
_REGISTER = re.compile(r"(?<!%)%(?=[a-z_])")
"""A special register in inline assembly with one percent sign: nvcc accepts it, clang only two signs."""
MESSAGE = re.compile(r"(.*?):(\d+):(\d+): (?:fatal )?error: (.*?)(?: \[-W[^\]]*(-W[a-z-]+)\])?")


@dataclass(frozen=True)
class Compiler:
    """command: the first words of its command line. identity: its name and version."""

    command: tuple[str, ...]
    identity: str


@dataclass(frozen=True)
class Error:
    """An error of the compiler. option: of the warning that is an error here."""

    file: str
    line: int
    column: int
    message: str
    option: str


@cache
def compiler() -> Compiler:
    """Return clang of the package ziglang, else of the system. Raises UnavailableError without one of a supported version, and for a
    llvmlite without a reader of its LLVM IR."""
    if llvm_version_info[0] < MIN_LLVM:
        raise UnavailableError(
            f"llvmlite has LLVM {llvm_version_info[0]}, CUDA C++ needs {MIN_LLVM}: python -m pip install 'simtbed[cuda-source]'"
        )
    spec = find_spec("ziglang")
    if spec is not None and spec.origin is not None:
        version = metadata.version("ziglang")
        if not version.startswith(ZIGLANG):
            raise UnavailableError(
                f"ziglang {ZIGLANG}* is required, this is {version}: python -m pip install 'simtbed[cuda-source]'"
            )
        return Compiler((str(Path(spec.origin).with_name("zig")), "clang"), f"ziglang {version}")
    path = shutil.which("clang")
    if path is None:
        raise UnavailableError(
            "CUDA C++ is compiled by clang, which is not installed: python -m pip install 'simtbed[cuda-source]'"
        )
    text = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    number = re.search(r"version (\d+)", text)
    if number is None or int(number[1]) < MIN_VERSION:
        raise UnavailableError(
            f"clang {MIN_VERSION} or newer is required, {printable(path)} is {number[1] if number else 'of no known version'}: "
            "python -m pip install 'simtbed[cuda-source]'"
        )
    return Compiler((path,), text.partition("\n")[0])


def compile_text(files: Mapping[str, str], options: Sequence[str], folders: Sequence[str]) -> tuple[str, list[Error]]:
    """Return the LLVM IR of the file SOURCE, empty after errors, and the errors.

    files: contents by path. folders: of the text, searched for names in quotes, then those of `-I`.
    Raises SimtbedError where the compiler ends without a message, UnavailableError without a compiler.
    """
    first, *rest = folders or ("",)
    used, definitions = with_definitions(list(_used(options)))
    arguments = [*ARGUMENTS, *used]
    arguments += ["-iquote", first] * bool(first) + [f"-I{folder}" for folder in rest]
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        overlay, output = Path(folder, "files.json"), Path(folder, "output.ll")
        source = str(Path(folder, os.path.basename(SOURCE)))  # the command line names an existing file
        present = {source if path == SOURCE else path: text for path, text in files.items()}
        present[HEADER] += definitions
        for path, text in present.items():
            present[path] = _ASSEMBLY.sub(lambda match: _REGISTER.sub("%%", match[0]), text)
        overlay.write_text(json.dumps(_overlay(present, folders, Path(folder))), encoding="utf-8")
        command = [*compiler().command, *arguments, "-ivfsoverlay", str(overlay), "-o", str(output), source]
        status, messages = _run(command, folder)
        messages = messages.replace(source, SOURCE)
        if status == 0 and output.is_file():
            return output.read_text(encoding="utf-8", errors="replace").replace(folder, os.path.dirname(SOURCE)), []
    errors = [
        Error(os.path.normpath(m[1]), int(m[2]), int(m[3]), m[4], m[5] or "")
        for m in map(MESSAGE.fullmatch, messages.splitlines())
        if m
    ]
    if not errors:
        last = messages.strip().splitlines()[-1:] or ["it has no message"]
        raise SimtbedError(f"the compiler of CUDA C++ ended with status {status}: {printable(last[0][:200])}")
    return "", errors


def with_definitions(options: Sequence[str]) -> tuple[list[str], str]:
    """Return options without `-DNAME` and `-UNAME`, and their lines for the end of the headers: macros of the user do not change these.

    Names with a leading underscore are reserved for headers and remain options.
    """
    rest, lines = list[str](), list[str]()
    for option in options:
        name, equals, value = option[2:].partition("=")
        if not option.startswith(MACRO_OPTIONS) or name.startswith("_"):
            rest.append(option)
        elif option.startswith("-D"):
            lines.append(f"#define {name} {value if equals else 1}\n")
        else:
            lines.append(f"#undef {name}\n")
    return rest, "".join(lines)


def _used(options: Sequence[str]) -> Iterator[str]:
    """Yield the options that change the meaning of a text; `-D` and `-U` with the name that follows. Raises SimtbedError without one."""
    rest = iter(options)
    for option in rest:
        if option in ("-D", "-U"):
            name = next(rest, "")
            if not name:
                raise SimtbedError(f"the option {option} of a CUDA C++ text has no name: write {option}NAME")
            yield option + name
        elif option.startswith(USED_OPTIONS):
            yield option


def _overlay(files: Mapping[str, str], folders: Sequence[str], folder: Path) -> dict[str, object]:
    """Write the contents of files to a folder; return the description of the compiler's file system.

    folders: exist also when they are empty, since an include with `../` starts in one.
    """
    contents: dict[str, list[dict[str, str]]] = {own: [] for own in folders if own}
    for number, (path, text) in enumerate(files.items()):
        own = folder / (os.path.basename(SOURCE) if os.path.dirname(path) == str(folder) else str(number))
        own.write_text(text, encoding="utf-8", errors="surrogatepass")
        entry = {"type": "file", "name": os.path.basename(path), "external-contents": str(own)}
        contents.setdefault(os.path.dirname(path), []).append(entry)
    roots = [{"type": "directory", "name": name, "contents": entries} for name, entries in contents.items()]
    return {"version": 0, "case-sensitive": "true", "use-external-names": False, "fallthrough": False, "roots": roots}


def processor_seconds() -> float:
    """Return the processor time of the compilers so far; the time of day depends on the load of the machine."""
    used = os.times()
    return used.children_user + used.children_system


def _run(command: Sequence[str], folder: str) -> tuple[int, str]:
    """Run a command below the limits. Return its status and its messages."""
    # One limit a command: dash ignores all but the last of several.
    limits = f'ulimit -t {SECONDS}; ulimit -v {KIBIBYTES}; ulimit -f {BLOCKS}; ulimit -c 0; exec "$@"'
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": folder, "LC_ALL": "C.UTF-8", "TMPDIR": folder}
    environment |= {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}
    try:
        result = subprocess.run(
            ["/bin/sh", "-c", limits, "sh", *command], capture_output=True, cwd=folder, env=environment, timeout=MAX_WAIT,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return -1, f"it was ended after {MAX_WAIT} s"
    except OSError as error:
        raise UnavailableError(f"clang cannot be run: {error.strerror or error}") from None
    if result.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
        return result.returncode, f"it was ended after {SECONDS} s of processor time"
    return result.returncode, result.stderr.decode(errors="replace")
