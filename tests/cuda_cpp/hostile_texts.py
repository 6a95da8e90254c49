"""Hostile texts of CUDA C++ by kind, each with the outcome: a part of its one error, or "" for a kernel.

The included files are `self.h`, which includes itself, `latin.h` in Latin-1, `wide.h` in UTF-16, `null.h` with a null byte, and `folder`.
"""

KERNEL = "__global__ void k(int *p) { p[0] = 1; }"


def body(text: str) -> str:
    return f"__global__ void k(int *p) {{ {text} }}"


def including(name: str) -> str:
    return f'#include "{name}"\n{KERNEL}'


HOSTILE: dict[str, tuple[str, str]] = {
    # includes
    "a file that includes itself": (including("self.h"), "#include nested too deeply"),
    "a folder as a file": (including("folder"), ""),
    "no name": (including(""), "empty filename"),
    "a null byte in a name": (including("a\0b.h"), ""),
    "a name of 5,000 characters": (including("a" * 5000 + ".h"), ""),
    "a name of many folders": (including("../" * 2000 + "etc/passwd"), ""),
    "a file in Latin-1": (including("latin.h"), ""),
    "a file in UTF-16": (including("wide.h"), ""),
    "a file with a null byte": (including("null.h"), ""),
    "a next file": ("#include_next <self.h>\n" + KERNEL, "'self.h' file not found"),
    "an include of a macro": ('#define F "self.h"\n#include F\n' + KERNEL, "an #include of a macro is not supported: write the file's na"),
    "a module": ("import std;\n" + KERNEL, ""),
    # characters
    "a null byte": (body("p[0] = 1;\0"), ""),
    "a lone surrogate": (body("p[0] = 1; // \ud800\n"), ""),
    "a byte order mark": ("\ufeff" + KERNEL, ""),
    "old line ends": (KERNEL.replace(" ", "\r"), ""),
    "20,000 statements in a line": (body("p[0] = 1;" * 20_000), ""),
    "spaces of 1 MB": (" " * (1 << 20) + KERNEL, ""),
    "a name of 1 MB": (f"__device__ int {'a' * (1 << 20)}; {KERNEL}", ""),
    "letters of other alphabets": (body("int größe = 1; p[0] = größe;"), ""),
    "a backslash at the end": (KERNEL + "\\", ""),
    # preprocessor
    "an unterminated comment": (KERNEL + "/*", "unterminated /* comment"),
    "an unterminated string": (KERNEL + '\nconst char *s = "', "expected expression"),
    "an unterminated raw string": (KERNEL + '\nconst char *s = R"x(', 'raw string missing terminating delimiter )x"'),
    "an unterminated condition": ("#if 1\n" + KERNEL, "unterminated conditional directive"),
    "an end without a condition": (KERNEL + "\n#endif\n", "#endif without #if"),
    "an error": ("#error here\n" + KERNEL, "here"),
    "a line number": ("#line 4000000000\n" + body("p[0] = wrong;"), "4000000000:36: use of undeclared"),
    "a line of another file": ('#line 3 "/etc/passwd"\n' + body("p[0] = wrong;"), "use of undeclared identifier 'wrong'"),
    "a macro for a keyword": ("#define __global__\n" + KERNEL, "the text has no kernel k; it has none"),
    "a macro for the headers": ("#define threadIdx blockIdx\n#define float int\n" + KERNEL, ""),
    "a poisoned name": ("#pragma GCC poison threadIdx int\n" + KERNEL, "attempt to use a poisoned identifier"),
    "a macro of itself": ("#define A A + A\n" + body("p[0] = A;"), "use of undeclared identifier 'A'"),
    # literals and sizes
    "an integer of 100,000 digits": (body(f"p[0] = {'9' * 100_000};"), "integer literal is too large to be represented in any intege"),
    "a float out of range": (body("p[0] = 1e999999 > 0;"), ""),
    "a string of 1 MB": (body(f'p[0] = "{"a" * (1 << 20)}"[p[1]];'), ""),
    "an array of 4 TB": (body("int a[1ll << 40]; a[p[0]] = 1; p[0] = a[p[1]];"), ""),
    "an array of negative size": (body("int a[-1]; p[0] = a[0];"), "'a' declared as an array with a negative size"),
    "an array of a variable size": (body("int a[p[0]]; a[p[1]] = 1; p[0] = a[p[2]];"), "cannot use variable-length arrays"),
    "shared memory of 1 GB": (body("__shared__ int a[1 << 28]; a[p[0]] = 1; p[0] = a[p[1]];"), ""),
    "a vector of 1 MB": (body("typedef int V __attribute__((vector_size(1 << 20))); V v = {}; p[0] = v[p[0]];"), "ended after 10 s"),
    "an integer of 4,096 bits": (body("unsigned _BitInt(4096) v = p[0]; p[0] = (int)(v * v >> 9);"), "bit sizes greater than 128"),
    "a long double": (body("long double v = p[0]; p[0] = v * v;"), ""),
    # templates and constants
    "a constant without end": (
        "constexpr int f() { for (;;); return 1; }\n" + body("constexpr int v = f(); p[0] = v;"),
        "constexpr variable 'v' must",
    ),
    "a deep constant": (
        "constexpr int f(int n) { return n ? f(n - 1) : 1; }\n" + body("constexpr int v = f(100000); p[0] = v;"),
        "constexpr variable 'v' must",
    ),
    "a false assertion": ("static_assert(false);\n" + KERNEL, "static assertion failed"),
    # types
    "a struct in itself": ("struct S { S s; };\n" + KERNEL, ""),
    "a list as a parameter": ("struct S { S *next; int v; };\n__global__ void k(S s, int *p) { p[0] = s.v; }", ""),
    "a parameter without a name": ("__global__ void k(int *) { }", ""),
    "parameters of one name": ("__global__ void k(int *p, int p) { }", "redefinition of parameter 'p'"),
    "a name of Python": ("__global__ void k(int *lambda, int self) { lambda[0] = self; }", ""),
    "a kernel of the name main": ("__global__ void main(int *p) { }\n" + KERNEL, ""),
    "two kernels of one name": ("namespace a { __global__ void k(int *p) { } } namespace b { __global__ void k(int *p) { } }", ""),
    "a kernel with a result": ("__global__ int k(int *p) { return 1; }", "kernel function type 'int (int *)' must have void return typ"),
    "a variable number of parameters": ("__global__ void k(int *p, ...) { }", "a variable number of parameters is not supported"),
    # statements
    "braces": (body("{" * 10_000 + "}" * 10_000), "bracket nesting level exceeded maximum of 2048"),
    "nested conditions": (body("if (p[0]) " * 3000 + "p[0] = 1;"), ""),
    "nested loops": (body("for (int i = 0; i < p[0]; i++) " * 200 + "p[0]++;"), ""),
    "a sum of 3,000 terms": (body("p[0] = " + " ^ ".join(f"p[{n}] * {n}" for n in range(3000)) + ";"), ""),
    "nested indices": (body("p[0] = " + "p[" * 200 + "1" + "]" * 200 + ";"), ""),
    "a switch of 3,000 cases": (body("switch (p[0]) {" + "".join(f"case {n}: p[1] = {n % 97}; break;" for n in range(3000)) + "}"), ""),
    "a loop without end": (body("for (;;);"), ""),
    "a jump to an address": (body("void *a = p[0] ? &&x : &&y; goto *a; x: p[0] = 1; y: p[1] = 2;"), ""),
    "an exception": (body("throw 1;"), "cannot use 'throw' in __global__ function"),
    "a trap": (body("__builtin_trap();"), ""),
    "an unreachable end": (body("__builtin_unreachable();"), ""),
    "assembly of a module": ('asm(".global x");\n' + KERNEL, ""),
    "assembly of 1 MB": (body(f'asm volatile("{"mov.u32 %0, 1; " * 1000}" : "=r"(p[0]));'), ""),
    "an alias": ('extern "C" __device__ int g(int); __device__ int h(int) __attribute__((alias("g")));\n' + KERNEL, ""),
    "a constructor of the program": (
        "struct S { int v; __device__ S() : v(3) {} }; __device__ S s;\n" + body("p[0] = s.v;"),
        "dynamic initialization is no",
    ),
}  # fmt: skip
