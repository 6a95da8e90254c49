"""Random kernels of CUDA C++ without a mistake: branches, loops and early returns of single lanes between steps of the whole block."""

import random

BLOCK = 64
_INTEGERS = (
    "int",
    "unsigned",
    "short",
    "unsigned char",
    "long long",
    "signed char",
    "unsigned long long",
    "unsigned short",
)
_EXCHANGES = (
    "s ^= __shfl_xor_sync(0xffffffff, t, {});",
    "t += __shfl_down_sync(0xffffffff, s, {});",
    "u ^= __ballot_sync(0xffffffff, (s >> {}) & 1);",
    "__syncthreads(); tile[threadIdx.x] = s; __syncthreads(); t ^= tile[threadIdx.x ^ {}];",
    "t += __syncthreads_count((s & 63) > {});",
    "if (__any_sync(0xffffffff, (t & 63) == {})) s += 3;",
)


class _Writer:
    """names: variables of the statement that is written. number: of the program, a suffix of its names."""

    def __init__(self, seed: int) -> None:
        self.random, self.number = random.Random(seed), seed
        self.names = ["s", "t", "(int)u", "a"]
        self.counters = 0

    def fresh(self) -> str:
        self.counters += 1
        return f"i{self.counters}"

    def constant(self) -> str:
        return str(self.random.choice((0, 1, 2, 3, 7, 31, 255, -1, -5, 65535, 1000003)))

    def expression(self, depth: int) -> str:
        pick = self.random.choice
        if depth == 0 or self.random.random() < 0.15:
            return pick(self.names) if self.random.random() < 0.75 else self.constant()
        x, y = self.expression(depth - 1), self.expression(depth - 1)
        return pick((
            f"(int)((unsigned)({x}) {pick('+-*')} (unsigned)({y}))",
            f"({x} {pick('&|^')} {y})",
            f"(({pick(_INTEGERS)})({x}))",
            f"((unsigned)({x}) {pick(('<<', '>>'))} (({y}) & 31))",
            f"(({x}) {pick(('<', '>', '<=', '==', '!='))} ({y}) ? ({self.expression(depth - 1)}) : ({y}))",
            f"(({x}) {pick('/%')} ((({y}) & 15) + 1))",
            f"(int)(long long)((double)(float)({x}) * 0.25)",
            f"(({x}) >> (({y}) & 7))",
        ))  # fmt: skip

    def condition(self) -> str:
        bits = self.random.choice((1, 3, 7))
        return f"(({self.expression(1)}) & {bits}) {self.random.choice(('==', '!='))} {self.random.randrange(bits + 1)}"

    # -------------------------------------------------------------- statements of a lane
    def lane(self, depth: int, leave: tuple[str, ...] = ()) -> str:
        """Return statements that lanes run differently. leave: jumps that are possible here."""
        return " ".join(self._lane_statement(depth, leave) for _ in range(self.random.randrange(1, 3)))

    def _lane_statement(self, depth: int, leave: tuple[str, ...]) -> str:
        kind = self.random.randrange(10)
        if kind < 2 or not depth:
            return f"{self.random.choice('stu')} = {self.expression(2)};"
        if kind == 2:
            return (
                f"if ({self.condition()}) {{ {self.lane(depth - 1, leave)} }} else {{ {self.lane(depth - 1, leave)} }}"
            )
        if kind == 3:
            return f"if ({self.condition()}) {self._lane_statement(depth - 1, leave)}"
        if kind == 4 and leave:
            return f"if ({self.condition()}) {{ {self.lane(depth - 1)} {self.random.choice(leave)} }}"
        if kind == 5:
            cases = "".join(
                f" case {number}: {self.lane(depth - 1, leave)}{self.random.choice((' break;', ''))}"
                for number in range(3)
            )
            return f"switch ({self.expression(1)} & 3) {{{cases} default: u = u + 3; }}"
        if kind == 6:
            return (
                "{ int list[4] = {s, t, a, (int)u}; list[s & 3] ^= t; int *p = list + (t & 1); *p = *p ^ 3; "
                "s = list[(a ^ t) & 3]; t ^= p[1]; }"
            )
        return self._loop(depth, leave)

    def _loop(self, depth: int, leave: tuple[str, ...]) -> str:
        name, count = self.fresh(), f"(({self.expression(1)}) & 3) + {self.random.randrange(3)}"
        inner = ("break;", "continue;", *(one for one in leave if one.startswith("return")))
        kind = self.random.choice(("for", "while", "true", "do"))
        if kind == "for":
            word = self.random.choice(("unsigned char", "short", "unsigned", "int"))
            body = self.lane(depth - 1, inner)
            return f"{{ int n{name} = {count}; for ({word} {name} = 0; (int){name} < n{name}; ++{name}) {{ s ^= (int){name}; {body} }} }}"
        if kind == "while":
            return f"{{ int {name} = {count}; while ({name}-- > 0) {{ {self.lane(depth - 1, inner)} }} }}"
        if kind == "do":
            return f"{{ int {name} = {count}; do {{ {self.lane(depth - 1, inner)} }} while (--{name} > 0); }}"
        last = self.lane(depth - 1, leave)
        return f"{{ int {name} = {count}; while (true) {{ if (--{name} < 0) {{ {last} break; }} {self.lane(depth - 1, inner)} }} }}"

    # -------------------------------------------------------------- statements of the block
    def block(self, depth: int, leave: tuple[str, ...] = ()) -> str:
        """Return statements in which all lanes take the same branches of those that hold steps of the block."""
        return "\n    ".join(self._block_statement(depth, leave) for _ in range(self.random.randrange(2, 5)))

    def _block_statement(self, depth: int, leave: tuple[str, ...]) -> str:
        kind = self.random.randrange(8)
        if kind < 2 or not depth:
            return self.random.choice(_EXCHANGES).format(self.random.choice((1, 2, 4, 8, 16)))
        if kind < 5:
            return self.lane(2)
        if kind == 5:
            return f"s += f{self.number}({self.expression(1)}, {self.expression(1)});"
        name, iterations = self.fresh(), self.random.randrange(1, 4)
        if kind == 6:
            test = f"((n + {self.random.randrange(4)}) & 1)"
            return f"if {test} {{ {self.block(depth - 1, leave)} }} else {{ {self.block(depth - 1, leave)} }}"
        stop = f"if ({name} == n - {self.random.randrange(3)}) {{ {self.block(0)} {self.random.choice(('break;', 'continue;'))} }}"
        head = f"for (int {name} = 0; {name} < n + {iterations}; ++{name})"
        return f"{head} {{ {self.block(depth - 1)} {stop} {self.lane(1)} }}"

    def program(self) -> str:
        """Return a device function and a kernel."""
        function = f"int s = a, t = b; unsigned u = (unsigned)b; {self.lane(2, ('return s;', 'return t ^ 1;'))} return s ^ t ^ (int)u;"
        return (
            f"__device__ int f{self.number}(int a, int b) {{ {function} }}\n"
            f"__global__ void k{self.number}(const int *x, int n, int *out) {{\n    __shared__ int tile[{BLOCK}];\n"
            f"    int a = x[threadIdx.x], s = a, t = threadIdx.x; unsigned u = 7;\n    {self.block(2)}\n"
            f"    out[threadIdx.x] = s ^ t ^ (int)u;\n}}"
        )


def program(seed: int) -> str:
    """Return the text with the kernel `k<seed>`, for one block of `BLOCK` threads.

    Its parameters are x and out, arrays of i32 with one element a thread, and between them n, 0 to 3.
    """
    return _Writer(seed).program()
