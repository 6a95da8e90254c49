"""Quantities of Mangal and Jain 2014 derived from counters: lanes in the vote, and queries of the Bloom filter."""

from __future__ import annotations

from dataclasses import dataclass

from simtbed import Counters

LENGTH, K = 36, 21
"""K = 21 is inferred, the paper does not state it: 21 of 32 lanes are 65.6 %, the efficiency of Table 3 is 65.7 %."""
SEED = 1


def vote_phase(counters: Counters) -> float:
    """Return the warp execution efficiency of the selection of mutants."""
    return counters.at("other = i32(code(letters[first + p + v])) ^ change").derived()["warp_execution_efficiency"]


@dataclass(frozen=True)
class Probes:
    """Queries of a Bloom filter, with the negative ones and the bits read.

    lines: 128-byte lines that the accesses of warps touch. requests: of warps. A query that reaches the eighth hash function
    counts as positive.
    """

    queries: int
    negative: int
    bits: int
    lines: int
    requests: int

    @property
    def bits_a_negative(self) -> float:
        return (self.bits - 8 * (self.queries - self.negative)) / self.negative

    @staticmethod
    def from_counters(counters: Counters, k: int) -> Probes:
        first = (
            counters.at("a *= 378551").total("thread_instructions") // k
        )  # RS, the first: one multiplication a letter
        last = counters.at("h = (h << 5) ^ (h >> 27)").total("thread_instructions") // (4 * k)  # DEK, the eighth
        words = counters.at("word = bits[bit >> 5]")
        bits, requests = words.total("global_load_bytes") // 4, words.total("global_load_requests")
        return Probes(first, first - last, bits, words.total("global_load_lines"), requests)
