"""Chains of any length: `elif`, conditional expressions, `and`, sums. Only nesting has a limit."""

from collections.abc import Callable

import numpy as np
import pytest
import simtbed as st
from simtbed import CompileError
from simtbed.frontend.reader import specialise

from tests.table_checks import check_each

LENGTH = 130
HEAD = "def chain(out: st.Global[st.i32], x: st.Global[st.i32]) -> None:\n    n = x[st.lane]\n"
STORE = "    out[st.lane] = s\n"


def elif_chain(arm: str, last: str) -> str:
    words = ("if", *["elif"] * (LENGTH - 1))
    arms = (f"    {word} n == {k}:\n        {arm.format(k)}\n" for k, word in enumerate(words))
    return "".join(arms) + f"    else:\n        {last}\n"


def in_sum(joined: str) -> str:
    return f"    s = st.i32({joined})\n{STORE}"


def triple(n: int) -> int:
    return 3 * n if n < LENGTH else -1


CHAINS: tuple[tuple[str, Callable[[int], int]], ...] = (
    (elif_chain("s = 3 * {}", "s = -1") + STORE, triple),
    (elif_chain("out[st.lane] = 3 * {}\n        return", "s = -1") + STORE, triple),
    (f"    s = {' '.join(f'3 * {k} if n == {k} else' for k in range(LENGTH))} -1\n{STORE}", triple),
    (in_sum(" and ".join(f"n != {k}" for k in range(0, 400, 2))), lambda n: n % 2),
    (in_sum(" + ".join(f"n * {k}" for k in range(300))), lambda n: 44850 * n),
)


@pytest.mark.slow
def test_long_chains() -> None:
    x = np.arange(32, dtype=np.int32) * 5

    def check(chain: tuple[str, Callable[[int], int]]) -> None:
        body, expected = chain
        kernel = st.kernel(source=HEAD + body)
        args = {"out": st.empty(32, "i32"), "x": x}
        result = st.launch(kernel, grid=1, block=32, args=args, engine="numpy")
        assert result.out.tolist() == [expected(int(n)) for n in x]

    check_each(CHAINS, check, lambda chain: chain[0][:40])


def test_a_variable_of_a_chain_is_assigned_in_every_arm() -> None:
    kernel = st.kernel(source=HEAD + elif_chain("s = {}", "pass") + STORE)
    with pytest.raises(CompileError, match="s may be unassigned here") as caught:
        specialise(kernel, {})
    assert len(caught.value.diagnostics) == 1
