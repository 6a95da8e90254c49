"""The functions of the CUDA runtime, declared in `headers/functions.h`: their C++ declarations, forwarders through a table of
pointers, and types for ctypes."""

import ctypes
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ...cuda_cpp.header_files import FOLDER as DEVICE_HEADERS
from ...driver.attributes import ROWS

SOURCE_SUFFIXES = (".cu", ".cpp", ".cc", ".cxx", ".c")
"""Suffixes of the sources of a program."""
FOLDER = Path(__file__).with_name("headers")
_DECLARATION = re.compile(r"(\w+) (\w+)\((.*)\);")
_PARAMETER = re.compile(r"(.*?)(\w+)(?: = .*)?")
_TYPES = {
    "size_t": ctypes.c_size_t,
    "unsigned": ctypes.c_uint,
    "float": ctypes.c_float,
    "unsigned long long": ctypes.c_ulonglong,
}
"""Other types are pointers, handles (ending in _t) or integers of 32 bits."""
_IN_C = re.compile(r"^(?:enum|struct) cuda\w+ \{[^{}]*\};", re.MULTILINE)
"""Types of `texture.h` that sources in C have too."""
_TAG = re.compile(r"\b(enum|struct|union) (cuda\w+) \{")
_PLACE = "const char *simtbed_file, int simtbed_line"


@dataclass(frozen=True)
class RuntimeFunction:
    """A function of the runtime. parameters: type and name. declared: the parameters with their default values."""

    result: str
    name: str
    parameters: tuple[tuple[str, str], ...]
    declared: str

    @property
    def declaration(self) -> str:
        """The declaration for programs. The place of a call is its last two arguments."""
        return f"{self.result} {self.name}({', '.join([self.declared] * bool(self.declared) + ['SIMTBED_PLACE'])});"

    def forwarder(self, number: int) -> str:
        """Return the definition that calls entry `number` of the table."""
        own = [f"{type}{name}" for type, name in self.parameters]
        types = ", ".join([*(type for type, _ in self.parameters), "const char *", "int"])
        names = ", ".join([*(name for _, name in self.parameters), "simtbed_file", "simtbed_line"])
        call = f"return (({self.result} (*)({types}))simtbed_table[{number}])({names});"
        return f"{self.result} {self.name}({', '.join([*own, _PLACE])}) {{ {call} }}"

    @property
    def in_c(self) -> str:
        """The declaration for sources in C, which do not tell the place of a call."""
        return f"{self.result} {self.name}({', '.join(type + name for type, name in self.parameters) or 'void'})"

    @property
    def forwarder_of_c(self) -> str:
        names = ", ".join([*(name for _, name in self.parameters), '"a source in C"', "0"])
        return f'extern "C" {self.in_c} {{ return {self.name}({names}); }}'

    @property
    def prototype(self) -> Any:
        """The type of its implementation for ctypes."""
        result = None if self.result == "void" else ctypes.c_int
        return ctypes.CFUNCTYPE(
            result, *(_of_ctypes(type) for type, _ in self.parameters), ctypes.c_void_p, ctypes.c_int
        )


def _of_ctypes(type: str) -> Any:
    if "*" in type or (type.strip().endswith("_t") and type.strip() not in _TYPES):
        return ctypes.c_void_p
    return _TYPES.get(type.strip(), ctypes.c_int)


@cache
def runtime_functions() -> tuple[RuntimeFunction, ...]:
    """Return the functions in the order of the table."""
    functions = []
    for result, name, declared in _DECLARATION.findall((FOLDER / "functions.h").read_text(encoding="utf-8")):
        matches = [_PARAMETER.fullmatch(parameter) for parameter in declared.split(", ") if declared]
        parameters = tuple((match[1], match[2]) for match in matches if match)
        functions.append(RuntimeFunction(result, name, parameters, declared))
    return tuple(functions)


def runtime_header() -> str:
    """Return the declarations for programs."""
    return "\n".join(function.declaration for function in runtime_functions())


def c_header() -> str:
    """Return the types and functions of the runtime for sources in C."""
    textures = "\n".join(_IN_C.findall((DEVICE_HEADERS / "texture.h").read_text(encoding="utf-8")))
    types = (FOLDER / "runtime_types.h").read_text(encoding="utf-8").partition("\n// ---")[0]
    types = textures + types.replace("#pragma once", "")
    tags = "".join(f"typedef {kind} {name} {name};\n" for kind, name in _TAG.findall(types))
    base = "typedef struct dim3 { unsigned x, y, z; } dim3;\ntypedef unsigned long long cudaTextureObject_t, cudaSurfaceObject_t;"
    functions = "".join(f"{own.in_c};\n" for own in runtime_functions() if own.name.startswith("cuda"))
    return f"#pragma once\n#include <stddef.h>\n{base}\n{tags}{types}\n{functions}"


def driver_attributes() -> str:
    """Return the declaration of CUdevice_attribute."""
    return f"enum CUdevice_attribute {{ {', '.join(f'CU_DEVICE_ATTRIBUTE_{name} = {row[0]}' for name, row in ROWS.items())} }};"


def shim_text() -> str:
    """Return the text of the library between a program and this process."""
    forwarders = [function.forwarder(number) for number, function in enumerate(runtime_functions())]
    forwarders += [own.forwarder_of_c for own in runtime_functions() if own.name.startswith("cuda")]
    table = f'extern "C" {{ void *simtbed_table[{len(runtime_functions())}]; }}'
    return "\n".join([(FOLDER / "shim.h").read_text(encoding="utf-8"), table, *forwarders, ""])


def table_of(implementations: Mapping[str, Callable[..., int]]) -> list[Any]:
    """Return pointers to the implementations, in the order of the table. Keep them as long as the program runs."""
    return [function.prototype(implementations[function.name]) for function in runtime_functions()]
