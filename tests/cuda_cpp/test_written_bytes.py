"""Reads of device memory that no copy, memset or launch wrote."""

from collections.abc import Callable

import simtbed as st
from simtbed.cuda_cpp.addresses import bound_to_addresses, elements, launch_in_memory, memory_at
from simtbed.driver.memory import AddressSpace

from tests.table_checks import each_row

SOURCE = st.cuda_source("""
__global__ void read(const int *x, int *out) { out[threadIdx.x] = x[threadIdx.x]; }
__global__ void even(int *x) { if (threadIdx.x % 2 == 0) x[threadIdx.x] = 1; }
__global__ void wide(int4 *x, int *y) { x[threadIdx.x] = int4{1, 2, 3, 4}; __syncthreads(); y[64 + threadIdx.x] = y[threadIdx.x]; }
""")
BYTES = 4 * 32


class _Machine:
    """Allocations, and launches of 32 threads on them. reads: the elements that were read and not written."""

    def __init__(self) -> None:
        self.space = AddressSpace()
        self.reads: list[str] = []

    def allocate(self, size: int = BYTES) -> int:
        return self.space.allocate(size)

    def write(self, address: int, size: int, source: int | None = None) -> None:
        self.space.written.write(address, size, source)

    def launch(self, name: str, *addresses: int, check: str = "uninitialised", threads: int = 32) -> None:
        kernel = SOURCE[name]

        def find(address: int) -> tuple[int, int]:
            place = self.space.range_of(address)
            assert place is not None
            return place[0], address - place[0]

        by_name = dict(zip((p.name for p in kernel.parameters), addresses, strict=True))
        bound, owners = bound_to_addresses(kernel, by_name, find)
        pointers = {p.name: p for p in kernel.parameters}
        args = {n: elements(memory_at(s, self.space.sizes[s]), pointers[n]) for n, s in owners.items()}
        result = launch_in_memory(bound, self.space.written, grid=1, block=threads, args=args, check=check)
        self.reads += [f"{fault.message}, {fault.count}" for fault in result.faults]


def _never_written(m: _Machine) -> None:
    m.launch("read", m.allocate(), m.allocate())


def _copied(m: _Machine) -> None:
    x = m.allocate()
    m.write(x, BYTES)
    m.launch("read", x, m.allocate())


def _copied_in_pieces(m: _Machine) -> None:
    x = m.allocate()
    for start in (64, 0):
        m.write(x + start, 64)
    m.launch("read", x, m.allocate())


def _copied_from_unwritten_memory(m: _Machine) -> None:
    x, y = m.allocate(), m.allocate()
    m.write(x, 40)
    m.write(y, BYTES)
    m.write(y + 8, 64, x)
    m.launch("read", y, m.allocate())


def _one_byte_is_missing(m: _Machine) -> None:
    x = m.allocate()
    m.write(x, BYTES - 1)
    m.launch("read", x, m.allocate())


def _written_by_a_launch(m: _Machine) -> None:
    x, out = m.allocate(), m.allocate()
    m.launch("even", x)
    m.launch("read", x, out)
    m.launch("read", out, m.allocate())


def _written_by_an_unchecked_launch(m: _Machine) -> None:
    x = m.allocate()
    m.launch("even", x, check="")
    m.launch("read", x, m.allocate())


def _offset(m: _Machine) -> None:
    x = m.allocate(2 * BYTES)
    m.write(x + BYTES, 64)
    m.launch("read", x + BYTES, m.allocate())


def _freed(m: _Machine) -> None:
    x = m.allocate()
    m.space.remove(x)
    m.launch("read", m.allocate(), m.allocate())


def _two_types(m: _Machine) -> None:
    x = m.allocate(16 * 32)
    m.launch("wide", x, x)
    m.launch("read", x, m.allocate())


EXPECTED: dict[Callable[[_Machine], None], list[str]] = {
    _never_written: ["global read of x[0], which was never written, 32"],
    _copied: [],
    _copied_in_pieces: [],
    _copied_from_unwritten_memory: ["global read of x[12], which was never written, 6"],
    _one_byte_is_missing: ["global read of x[31], which was never written, 1"],
    _written_by_a_launch: ["global read of x[1], which was never written, 16"],
    _written_by_an_unchecked_launch: [],
    _offset: ["global read of x[48], which was never written, 16"],
    _freed: ["global read of x[0], which was never written, 32"],
    _two_types: [],
}


@each_row(EXPECTED.items(), lambda row: row[0].__name__)
def test_reads_of_unwritten_memory(row: tuple[Callable[[_Machine], None], list[str]]) -> None:
    machine = _Machine()
    row[0](machine)
    assert machine.reads == row[1]


def test_bytes_of_a_copy_that_nothing_wrote() -> None:
    space = AddressSpace()
    x = space.allocate(100)
    space.written.write(x + 10, 20)
    assert [space.written.unwritten(x, 100), space.written.unwritten(x + 12, 8), space.written.unwritten(5, 4)] == [
        80,
        0,
        0,
    ]
    space.written.write(x, 100)
    assert space.written.unwritten(x, 100) == 0
