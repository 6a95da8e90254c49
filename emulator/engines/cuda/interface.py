"""Interfaces of printed kernels: names and sizes for a launch, without the text."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Interface:
    """The call interface of a printed kernel.

    kernel: its name in C++. arguments: the program's parameters in the order of the kernel's; they precede
    `lengths`: arrays whose number of elements it takes, as int. written: the global arrays it may change.
    carved_bytes: dynamic shared memory that the launch must add for the kernel's shared arrays, if they are too large
    together to be static. cooperative: whether its blocks wait for the grid.
    """

    kernel: str
    arguments: tuple[str, ...]
    lengths: tuple[str, ...]
    written: frozenset[str]
    carved_bytes: int
    cooperative: bool

    def encode(self) -> dict[str, object]:
        return {**asdict(self), "written": sorted(self.written)}

    @staticmethod
    def decode(data: dict[str, object]) -> Interface:
        interface = Interface(**data)  # type: ignore[arg-type]  # the disk cache gives what `encode` made
        return Interface(
            interface.kernel,
            tuple(interface.arguments),
            tuple(interface.lengths),
            frozenset(interface.written),
            interface.carved_bytes,
            interface.cooperative,
        )
