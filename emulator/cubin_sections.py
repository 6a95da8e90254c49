"""Sections of a cubin: architecture, kernels, layouts of parameters, constant banks, initialised global memory."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

_NO_BITS, _MAX_BYTES = 8, 1 << 30
_SYMBOL_BYTES, _RELOCATION_BYTES = 24, 24
_CUDA, _EXECUTABLE = 190, 2
"""Machine and type of the ELF file of a linked cubin."""
_OLD_ABI, _FUNCTION = 0x33, 2
_PARAMETER, _PARAMETER_BYTES = 0x17, 12
"""Attribute of .nv.info that states the place of a parameter, and its size."""
_REGISTERS = 0x2F
"""Attribute of .nv.info with the symbol of a kernel and its registers a thread."""
_CLUSTER = 0x3D
"""Attribute of .nv.info of a kernel with the blocks of a cluster by axis, where its source states them."""
_WITH_DATA = 4
"""Format of an attribute whose data follow; others have two bytes."""
_GLOBALS = (".nv.global.init", ".nv.global")


class Parameter(NamedTuple):
    """A parameter of a kernel, in bytes from the first one."""

    offset: int
    size: int


@dataclass(frozen=True)
class Sections:
    """The sections of an ELF file by name; those without bits are zeros. names: of all sections, by number. architecture:
    such as "sm_90"; empty for another machine. is_linked: whether addresses are final."""

    contents: dict[str, bytes]
    names: tuple[str, ...] = ()
    architecture: str = ""
    is_linked: bool = True

    @staticmethod
    def read(elf: bytes) -> Sections:
        """Parse a 64-bit ELF file. Raises ValueError for another one."""
        if elf[:5] != b"\x7fELF\x02":
            raise ValueError("expected a 64-bit ELF file")
        try:
            kind, machine = struct.unpack_from("<HH", elf, 0x10)
            (table,) = struct.unpack_from("<Q", elf, 0x28)
            (flags,) = struct.unpack_from("<I", elf, 0x30)
            size, count, naming = struct.unpack_from("<HHH", elf, 0x3A)
            headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + n * size) for n in range(count)]
            first = headers[naming][4]
            contents, names = dict[str, bytes](), list[str]()
            for name, form, _, _, offset, length, *_ in headers:
                present = 0 if form == _NO_BITS else max(len(elf) - offset, 0)
                if length > (_MAX_BYTES if form == _NO_BITS else present) and form:
                    raise ValueError
                names.append(elf[first + name : elf.index(0, first + name)].decode())
                contents[names[-1]] = bytes(length) if form == _NO_BITS else elf[offset : offset + length]
        except (struct.error, IndexError, OverflowError, ValueError):
            raise ValueError("expected a complete ELF file") from None
        number = flags & 0xFF if elf[7] == _OLD_ABI else flags >> 8 & 0xFF
        return Sections(contents, tuple(names), f"sm_{number}" if machine == _CUDA else "", kind == _EXECUTABLE)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels, in the order of the file."""
        return tuple(
            name.removeprefix(".text.")
            for name in self.names
            if name.startswith(".text.") and name.replace("text", "nv.constant0", 1) in self.contents
        )

    def parameters(self, kernel: str) -> tuple[Parameter, ...]:
        """Return the layout of a kernel's parameters, in order. Raises ValueError for damaged data."""
        found = {}
        for attribute, data in self._attributes(f".nv.info.{kernel}"):
            if attribute == _PARAMETER and len(data) >= _PARAMETER_BYTES:
                ordinal, offset, bits = struct.unpack_from("<HHI", data, 4)
                found[ordinal] = Parameter(offset, bits >> 18)
        if sorted(found) != list(range(len(found))):
            raise ValueError(f"the parameters of {kernel} are incomplete")
        return tuple(found[n] for n in range(len(found)))

    def _attributes(self, section: str) -> list[tuple[int, bytes]]:
        """Return the attributes of a section of .nv.info with their data."""
        data, at, result = self.contents.get(section, b""), 0, []
        while at + 4 <= len(data):
            form, attribute, size = struct.unpack_from("<BBH", data, at)
            end = at + 4 + (size if form == _WITH_DATA else 0)
            result.append((attribute, data[at + 4 : end] if form == _WITH_DATA else data[at + 2 : at + 4]))
            at = end
        return result

    def registers(self, kernel: str) -> int:
        """Return the registers of a thread. Raises ValueError where the file does not state them."""
        symbols = self._symbols
        for attribute, data in self._attributes(".nv.info"):
            number, count = struct.unpack_from("<II", data) if len(data) == 8 else (len(symbols), 0)
            if attribute == _REGISTERS and number < len(symbols) and symbols[number][0] == kernel:
                return int(count)
        raise ValueError(f"the registers of {kernel} are not stated")

    def cluster(self, kernel: str) -> tuple[int, int, int]:
        """Return the blocks of a cluster by axis that the source of a kernel states; ones without a statement."""
        attributes = self._attributes(f".nv.info.{kernel}")
        data = next((one for attribute, one in attributes if attribute == _CLUSTER and len(one) >= 12), None)
        return struct.unpack_from("<3I", data) if data is not None else (1, 1, 1)

    @property
    def _symbols(self) -> list[tuple[str, int]]:
        """Names and values of the symbols, by number."""
        names, symbols = self.contents.get(".strtab", b""), self.contents.get(".symtab", b"")
        rows = (
            struct.unpack_from("<I4xQ", symbols, at) for at in range(0, len(symbols) - _SYMBOL_BYTES + 1, _SYMBOL_BYTES)
        )
        return [(names[name : names.index(0, name)].decode(), value) for name, value in rows]

    def static_shared(self, kernel: str) -> int:
        """Return the static shared memory of a block in bytes."""
        return len(self.contents.get(f".nv.shared.{kernel}", b""))

    @property
    def initial_globals(self) -> bytes:
        """The module's global memory: initialised variables, then others."""
        return b"".join(self._global_sections.values())

    @property
    def _global_sections(self) -> dict[str, bytes]:
        return {name: data + bytes(-len(data) % 256) for name in _GLOBALS if (data := self.contents.get(name, b""))}

    def _place_of_symbol(self, number: int) -> int | None:
        """Return the offset of a variable in the module's global memory; None for a function of the driver, such as printf."""
        info, section, value = struct.unpack_from("<4xBxHQ", self.contents[".symtab"], _SYMBOL_BYTES * number)
        if info & 15 == _FUNCTION and not section:
            return None
        offset = 0
        for name, data in self._global_sections.items():
            if self.names[section : section + 1] == (name,):
                return int(offset + value)
            offset += len(data)
        raise ValueError("a constant has the address of something other than global memory")

    def constant_banks(self, kernel: str, globals_address: int, written: Mapping[str, bytes]) -> dict[int, bytes]:
        """Return the constant banks 2 to 4 by number. globals_address: of the module's global memory. written: contents of
        variables in constant memory, by symbol. Raises ValueError for damaged data."""
        banks = {}
        for number in (2, 3, 4):
            own = self.contents.get(f".nv.constant{number}.{kernel}", b"")
            if data := own or self.contents.get(f".nv.constant{number}", b""):
                banks[number] = data
        if 3 in banks and written:
            banks[3] = self._written(banks[3], written)
        if 4 in banks:
            try:
                banks[4] = self._relocated(banks[4], globals_address)
            except (struct.error, KeyError):
                raise ValueError("its relocations are damaged") from None
        return banks

    def _written(self, bank: bytes, contents: Mapping[str, bytes]) -> bytes:
        """Return bank 3 with the contents of variables."""
        result = bytearray(bank)
        for name, value in self._symbols:
            content = contents.get(name, b"")
            result[value : value + len(content)] = content
        return bytes(result)

    def _relocated(self, bank: bytes, globals_address: int) -> bytes:
        """Return bank 4 with the addresses of global memory; an addend is in the relocation, or at its place."""
        result = bytearray(bank)
        for name, size in ((".rela.nv.constant4", _RELOCATION_BYTES), (".rel.nv.constant4", _RELOCATION_BYTES - 8)):
            relocations = self.contents.get(name, b"")
            for at in range(0, len(relocations), size):
                offset, info = struct.unpack_from("<QQ", relocations, at)
                (addend,) = struct.unpack_from(
                    "<q", *((relocations, at + 16) if size == _RELOCATION_BYTES else (bank, offset))
                )
                place = self._place_of_symbol(info >> 32)
                address = 0 if place is None else globals_address + place + addend
                struct.pack_into("<Q", result, offset, address)
        return bytes(result)
