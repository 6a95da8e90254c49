"""Python names as C++ identifiers: valid, unique, and none that C++ or CUDA already uses."""

from __future__ import annotations

import re

from ...ir.names import variable_of_value
from ...ir.ops import TABLE

KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl const
const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export extern false
float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
protected public register reinterpret_cast restrict return short signed sizeof static static_assert static_cast struct
switch template this thread_local throw true try typedef typeid typename typeof union unsigned using virtual void
volatile wchar_t while xor xor_eq
"""
CUDA = """
threadIdx blockIdx blockDim gridDim warpSize assert printf floor_div floor_mod dim3 size_t ptrdiff_t uint ushort ulong
uchar atomicAdd atomicMin atomicMax atomicAnd atomicOr atomicXor atomicExch atomicCAS NULL EOF errno linux unix stdin
stdout stderr std NAN INFINITY HUGE_VAL HUGE_VALF BUFSIZ NULL offsetof
"""
LIBRARY = """
a64l abort abs acos acosh alloca asin asinh atan atan2 atanh atexit atof atoi atol ballot basename bcmp bcopy bsearch
bzero calloc canonicalize cbrt ceil clock clock64 copysign cos cosh cospi cyl_bessel_i0 cyl_bessel_i1 dadd ddiv
difftime div dmul drem dsqrt dsub ecvt erf erfc erfcinv erfcx erfinv exit exp exp10 exp2 expm1 fabs fadd fclose fcvt
fdim fdiv fdivide ffma ffs ffsl ffsll finite floor fma fmax fmaximum fmin fminimum fmod fmul fopen fprintf fread free
frexp fsqrt fsub fwrite gamma gcvt getc getchar getenv getline getpayload gets hypot ilogb index isalpha isascii
isdigit isfinite isinf isnan isspace j0 j1 jn l64a labs ldexp ldiv lgamma llabs lldiv llmax llmin llogb llrint llround
log log10 log1p log2 logb lrint lround main malloc max memchr memcmp memcpy memmove memset min mktime modf nan
nanosleep nearbyint nextafter nextdown nexttoward nextup norm norm3d norm4d normcdf normcdfinv perror pow pow10 putc
putchar putenv puts qsort raise rand random rcbrt realloc realpath remainder remove remquo rename rewind rhypot rindex
rint rnorm rnorm3d rnorm4d round roundeven rsqrt scalb scalbln scalbn scanf select setbuf setenv setstate signal
signbit significand sin sincos sincospi sinh sinpi snprintf sprintf sqrt srand srandom sscanf strcat strchr strcmp
strcpy strcspn strdup strerror strlen strncmp strspn strstr strtod strtof strtok strtol swab system tan tanh tgamma
time tmpfile tmpnam toascii tolower totalorder toupper trunc ullmax ullmin umax umin ungetc valloc y0 y1 yn
"""
VECTOR_ELEMENTS = """
char uchar short ushort int uint long ulong longlong ulonglong float double
"""
HALVES = "half half2 nv_half nv_half2 bfloat162 nv_bfloat16 nv_bfloat162"
_VECTORS = [f"{element}{lanes}" for element in VECTOR_ELEMENTS.split() for lanes in range(1, 5)] + HALVES.split()
_SPELLINGS = " ".join(row.spelling(type) for row in TABLE.values() for type in row.types)
RESERVED = frozenset(
    [
        *KEYWORDS.split(),
        *CUDA.split(),
        *(f"{word}{single}" for word in LIBRARY.split() for single in ("", "f")),
        *(f"{make}{vector}" for make in ("", "make_") for vector in _VECTORS),
        *re.findall(r"[A-Za-z_]\w*", _SPELLINGS),
    ]
)
MACROS = re.compile(r"[A-Z]+_(MAX|MIN|WIDTH)|(M|FP|ADJ|STA|MOD)_[A-Z0-9_]+")

RESERVED_FORM = re.compile(r"__+|^_(?=[A-Z])")
"""What makes a name one of the compiler's: two underscores, or one before a capital at the beginning."""


class Names:
    """The identifiers of one scope, distinct from those of the enclosing scopes."""

    def __init__(self, enclosing: Names | None = None) -> None:
        self._used: set[str] = set(enclosing._used) if enclosing else set(RESERVED)

    def new(self, name: str) -> str:
        """An identifier for a Python name; for a generated one (with `@`) its stem, numbered."""
        stem, generated, of_layout = name.partition("@")
        if of_layout.startswith((".", ":")):
            stem, generated = "_".join((stem, *re.split("@?[.:]", of_layout)[1:])), ""
        elif variable_of_value(name) is not None:
            generated = ""
        stem = "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"u{ord(c):x}" for c in stem)
        stem = RESERVED_FORM.sub(lambda found: "_" if found[0].startswith("__") else "", stem) or "_"
        if MACROS.fullmatch(stem):
            stem += "_v"  # no number makes such a name safe
        number = 1
        chosen = f"{stem}_1" if generated else stem
        while chosen in self._used:
            number += 1
            chosen = f"{stem}_{number}"
        self._used.add(chosen)
        return chosen
