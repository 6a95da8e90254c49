"""CUDA C++ texts compiled by a host compiler with a runtime of their own, a second opinion on the results of the emulators."""

import ctypes
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

COMPILER = next((path for name in ("g++", "clang++") if (path := shutil.which(name))), None)
OPTIONS = ("-std=c++17", "-O1", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-w", "-shared", "-fPIC")
RUNTIME = Path(__file__).with_name("host_runtime.h")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*(?:include|line)\b.*$", re.MULTILINE)
_DYNAMIC = re.compile(r"extern\s+__shared__\s+(?:__align__\(\d+\)\s+)?([\w ]+?)\s+(\w+)\s*\[\s*\]\s*;")
_ERROR = re.compile(r"^(text_\d+):\d+:(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)


@dataclass
class HostKernels:
    """Kernels of several texts in one shared library. refused: by key, the compiler's error."""

    texts: Mapping[str, tuple[str, str]]
    """By key: a text, and the kernel's name or instance."""
    folder: Path
    refused: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert COMPILER is not None
        self.keys = list(self.texts)
        library = self.folder / "kernels.so"
        while True:
            source = self.folder / "kernels.cpp"
            source.write_text(self._unit(), encoding="utf-8")
            result = subprocess.run(
                [COMPILER, *OPTIONS, "-o", str(library), str(source)], capture_output=True, text=True, timeout=600, check=False
            )  # fmt: skip
            errors = {self.keys[int(name[5:])]: message for name, message in reversed(_ERROR.findall(result.stderr))}
            if not result.returncode:
                break
            assert errors, result.stderr
            self.refused |= errors
        self._library = ctypes.CDLL(str(library))

    def _unit(self) -> str:
        """Return the program: each text in a namespace, named in errors by the number of its key."""
        pieces = [f'#include "{RUNTIME}"']
        for number, key in enumerate(self.keys):
            text, kernel = self.texts[key]
            if key in self.refused:
                continue
            text = _DYNAMIC.sub(r"\1 *\2 = (\1 *)dynamic_memory;", _INCLUDE.sub("", text)).replace('extern "C"', "")
            pieces.append(
                f'#line 1 "text_{number}"\nnamespace text_{number} {{\n{text}\n}}\n'
                f'extern "C" bool launch_{number}(void **args, const unsigned int *shape, size_t shared) {{\n'
                f"    using namespace text_{number};\n    return launch(&{kernel}, args, shape, shared);\n}}"
            )
        return "\n".join(pieces)

    def launch(self, key: str, grid: Any, block: Any, args: Sequence[Any], shared: int = 0) -> None:
        """Run a kernel. args: arrays, which it changes; None for a null pointer; NumPy scalars."""
        boxes: list[Any] = [
            np.array([0 if value is None else value.ctypes.data], np.uintp)
            if value is None or isinstance(value, np.ndarray)
            else np.array([value])
            for value in args
        ]
        pointers = (ctypes.c_void_p * max(len(boxes), 1))(*(box.ctypes.data for box in boxes))
        shape = (ctypes.c_uint * 6)(*_three(grid), *_three(block))
        function = getattr(self._library, f"launch_{self.keys.index(key)}")
        function.restype = ctypes.c_bool
        assert function(pointers, shape, ctypes.c_size_t(shared)), f"{key}: its threads wait for one another"


def _three(shape: Any) -> tuple[int, int, int]:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return (*sizes, 1, 1, 1)[:3]
