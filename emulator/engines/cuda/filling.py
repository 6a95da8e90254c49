"""Fills device memory with one element, without a copy from the host."""

import sys
from typing import Any

import numpy as np

from ...runtime.arrays import Buffer

MOST = 1 << 30
"""Bytes of a call: PyCUDA counts them in 32 bits."""


def fill(driver: Any, address: Any, size: int, element: Buffer, stream: Any = None) -> None:
    """Fill `size` bytes from `address` with an element whose size divides them, before the next operations of `stream`.

    The driver fills with patterns of 1, 2 or 4 bytes. A longer pattern is written once and then copied in doubling sizes.
    """
    pattern, begin = element.tobytes(), int(address)
    for period, memset in ((1, driver.memset_d8_async), (2, driver.memset_d16_async), (4, driver.memset_d32_async)):
        if len(pattern) % period == 0 and pattern == pattern[:period] * (len(pattern) // period):
            word = int.from_bytes(pattern[:period], sys.byteorder)
            for filled in range(0, size, MOST):
                memset(begin + filled, word, min(MOST, size - filled) // period, stream)
            return
    for number, word in enumerate(np.frombuffer(pattern, np.uint32).tolist()):
        driver.memset_d32_async(begin + 4 * number, word, 1, stream)
    filled = len(pattern)
    while filled < size:
        some = min(filled, size - filled, MOST)  # the source is a whole number of elements before the destination
        driver.memcpy_dtod_async(begin + filled, begin, some, stream)
        filled += some
