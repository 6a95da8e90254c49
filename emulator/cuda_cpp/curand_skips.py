"""Matrices that skip sequences of XORWOW, the default generator of cuRAND."""

POWERS = 20
"""Matrices: that of 2^67 steps, its square, and so on."""
_WORDS, _BITS = 5, 160
_MASK = 0xFFFF_FFFF


def step(state: int) -> int:
    """Return the state after one step. A state is five words of 32 bits, the first one lowest."""
    first, last = state & _MASK, state >> 32 * (_WORDS - 1)
    mixed = first ^ first >> 2
    return state >> 32 | (last ^ last << 4 ^ mixed ^ mixed << 1) % (1 << 32) << 32 * (_WORDS - 1)


def applied(matrix: list[int], state: int) -> int:
    """Return the product of a matrix over GF(2) with a state. matrix: the state after each bit."""
    result = 0
    for bit, row in enumerate(matrix):
        if state >> bit & 1:
            result ^= row
    return result


def curand_skips() -> str:
    """Return the header with the matrices."""
    matrix = [step(1 << bit) for bit in range(_BITS)]
    words = list[int]()
    for power in range(67 + POWERS):
        if power >= 67:
            words += [row >> 32 * word & _MASK for row in matrix for word in range(_WORDS)]
        matrix = [applied(matrix, row) for row in matrix]
    values = ",".join(map(str, words))
    device = "#ifdef __CUDA_ARCH__\n__device__\n#endif"
    table = f"#define SIMTBED_SKIPS {POWERS}\n{device}\nstatic constexpr unsigned simtbed_skips[] = {{{values}}};"
    return f"#ifndef SIMTBED_SKIPS\n{table}\n#endif\n"
