"""Sections of a cubin: constant banks and initialised global memory."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_NO_BITS = 8
_SYMBOL_BYTES, _RELOCATION_BYTES = 24, 24


@dataclass(frozen=True)
class Sections:
    """The sections of an ELF file by name; those without bits are zeros."""

    contents: dict[str, bytes]

    @staticmethod
    def read(elf: bytes) -> Sections:
        """Parse a 64-bit ELF file. Raises ValueError for another one."""
        if elf[:5] != b"\x7fELF\x02":
            raise ValueError("expected a 64-bit ELF file")
        try:
            (table,) = struct.unpack_from("<Q", elf, 0x28)
            size, count, naming = struct.unpack_from("<HHH", elf, 0x3A)
            headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + n * size) for n in range(count)]
            names = headers[naming][4]
            contents = {}
            for name, kind, _, _, offset, length, *_ in headers:
                text = elf[names + name : elf.index(0, names + name)].decode()
                contents[text] = b"\0" * length if kind == _NO_BITS else elf[offset : offset + length]
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise ValueError(f"expected a complete ELF file: {error}") from None
        return Sections(contents)

    def static_shared(self, kernel: str) -> int:
        """Return the static shared memory of a block in bytes."""
        return len(self.contents.get(f".nv.shared.{kernel}", b""))

    @property
    def initial_globals(self) -> bytes:
        """The module's initialised global memory."""
        return self.contents.get(".nv.global.init", b"") or self.contents.get(".nv.global", b"")

    def constant_banks(self, kernel: str, globals_address: int) -> dict[int, bytes]:
        """Return the constant banks 2 to 4 by number. globals_address: of the module's global memory."""
        banks = {}
        for number in (2, 3, 4):
            own = self.contents.get(f".nv.constant{number}.{kernel}", b"")
            if data := own or self.contents.get(f".nv.constant{number}", b""):
                banks[number] = data
        if 4 in banks:
            banks[4] = self._relocated(banks[4], globals_address)
        return banks

    def _relocated(self, bank: bytes, globals_address: int) -> bytes:
        """Return bank 4 with the addresses of global memory."""
        result, relocations = bytearray(bank), self.contents.get(".rela.nv.constant4", b"")
        for at in range(0, len(relocations), _RELOCATION_BYTES):
            offset, info, addend = struct.unpack_from("<QQq", relocations, at)
            (value,) = struct.unpack_from("<8xQ", self.contents[".symtab"], _SYMBOL_BYTES * (info >> 32))
            struct.pack_into("<Q", result, offset, globals_address + value + addend)
        return bytes(result)
