"""Special functions, to the bit of an H200: special values, and digests of sampled results recorded on the card."""

from __future__ import annotations

import hashlib

import numpy as np
from simtbed.sass.mufu import MUFU

from tests.table_checks import check_each

INPUTS = [
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, 0x7F7FFFFF,
    0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FA12345, 0x3F800000, 0xBF800000,
]  # fmt: skip
SPECIAL = {
    "RCP": """7f800000 ff800000 7f800000 ff800000 7f800000 ff800000 7e800000 fe800000 00000000
    80000000 00000000 80000000 7fffffff 7fffffff 7fffffff 7fffffff 3f800000 bf800000""",
    "RSQ": """7f800000 ff800000 7f800000 ff800000 7f800000 ff800000 5f000000 7fffffff 1f800000
    7fffffff 00000000 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 3f800000 7fffffff""",
    "SQRT": """00000000 80000000 00000000 80000000 00000000 80000000 20000000 7fffffff 5f7fffff
    7fffffff 7f800000 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 3f800000 7fffffff""",
    "EX2": """3f800000 3f800000 3f800000 3f800000 3f800000 3f800000 3f800000 3f800000 7f800000
    00000000 7f800000 00000000 7fffffff 7fffffff 7fffffff 7fffffff 40000000 3f000000""",
    "LG2": """ff800000 ff800000 ff800000 ff800000 ff800000 ff800000 c2fbffff 7fffffff 42ffffff
    7fffffff 7f800000 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 00000000 7fffffff""",
    "SIN": """00000000 80000000 00000000 80000000 00000000 80000000 00000000 80000000 00000000
    80000000 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 00000000 80000000""",
    "COS": """3f800000 3f800000 3f800000 3f800000 3f800000 3f800000 3f800000 3f800000 3f800000
    3f800000 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 3f800000 3f800000""",
    "TANH": """00000000 80000000 00000001 80000001 007fffff 807fffff 00800000 80800000 3f800000
    bf800000 3f800000 bf800000 7fffffff 7fffffff 7fffffff 7fffffff 3f42f848 bf42f848""",
    "RCP64H": """7ff00000 fff00000 7ff00000 fff00000 7f600000 ff600000 7f600000 ff600000 00600000
    80600000 00600000 80600000 00200000 80200000 005ffffe 003de022 40600000 c0600000""",
    "RSQ64H": """7ff00000 fff00000 7ff00000 fff00000 5fa6a09e 7fffffff 5fa6a09e 7fffffff 2026a09e
    7fffffff 2026a09e 7fffffff 2006a09e 7fffffff 2026a09d 2015dd08 4026a09e 7fffffff""",
}
"""Results of INPUTS by function, hexadecimal."""
DIGESTS = {
    "RCP": "779eeb6acb8613b7",
    "RSQ": "1bcec59f28c1afc1",
    "SQRT": "28d77b9c532da54c",
    "EX2": "18f6d68c0dc1326e",
    "LG2": "451ca4f919e30c2a",
    "SIN": "db0d80c0492d6751",
    "COS": "ea0cd7a89e13dacc",
    "TANH": "85844fd35a1a5a4a",
    "RCP64H": "59e067da77a67d22",
    "RSQ64H": "8892d2e947cabd0b",
}
"""sha256 of the results of `sample()`, from tables whose results equal the card's for all 2^32 arguments."""


def sample() -> np.ndarray:
    """Return every 65521st bit pattern."""
    return np.arange(0, 1 << 32, 65521, dtype=np.int64).astype(np.uint32)


def test_special_values() -> None:
    def check(name: str) -> None:
        expected = [int(digits, 16) for digits in SPECIAL[name].split()]
        assert MUFU[name](np.array(INPUTS, np.uint32)).tolist() == expected

    check_each(SPECIAL, check)


def test_sampled_results() -> None:
    def check(name: str) -> None:
        assert hashlib.sha256(MUFU[name](sample()).tobytes()).hexdigest()[:16] == DIGESTS[name]

    assert DIGESTS.keys() == MUFU.keys()
    check_each(DIGESTS, check)
