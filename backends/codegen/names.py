"""Identifiers of generated code: the user's names, made unique and distinct from reserved words.

They consist of ASCII letters, digits and underscores. A node's name is in scope in the whole
function; that of an index variable only in its loop, so that neighbouring loops may both use `i`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

MAX_LENGTH = 40
"""Longer names are truncated: no line of generated code may be one word."""

_C_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while alignas alignof bool constexpr false nullptr static_assert
    thread_local true typeof typeof_unqual asm fortran near far huge
"""
_CPP_WORDS = """
    and and_eq bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield compl
    concept const_cast consteval constinit decltype delete dynamic_cast explicit export friend
    mutable namespace new noexcept not not_eq operator or or_eq private protected public
    reinterpret_cast requires static_cast template this throw try typeid typename using virtual
    wchar_t xor xor_eq final override import module
"""
_CUDA_WORDS = """
    threadIdx blockIdx blockDim gridDim warpSize clock clock64 dim3 uint3 float2 float3 float4
    double2 double3 double4 int2 int3 int4 half half2 cuda std atomicAdd
"""
_LIBRARY = """
    acos asin atan atan2 ceil cos cosh exp fabs floor fmod frexp ldexp log log10 modf pow sin sinh
    sqrt tan tanh acosh asinh atanh cbrt copysign erf erfc exp2 expm1 fdim fma fmax fmin hypot ilogb
    lgamma llrint llround log1p log2 logb lrint lround nan nearbyint nextafter nexttoward remainder
    remquo rint round scalbln scalbn tgamma trunc signgam j0 j1 jn y0 y1 yn gamma drem significand
    cabs carg cexp cimag clog conj cpow cproj creal csin csqrt ctan
    isnan isinf isfinite isnormal signbit fpclassify isgreater isless isunordered
    NAN INFINITY HUGE_VAL HUGE_VALF M_PI M_E M_LN2 M_LN10 M_SQRT2 M_PI_2 M_PI_4 FP_NAN FP_ZERO
    NULL EOF I complex imaginary
    abort abs aligned_alloc atexit atof atoi atol atoll bsearch calloc div exit free getenv labs
    ldiv malloc mblen
    qsort rand random realloc srand strtod strtof strtol strtold strtoll strtoul system alloca
    memccpy memchr memcmp memcpy memmove memset strcat strchr strcmp strcoll strcpy strcspn strdup
    strerror strlen strncat strncmp strncpy strpbrk strrchr strspn strstr strtok strxfrm index
    rindex bcmp bcopy bzero ffs main errno environ stdin stdout stderr printf puts read write open
    close send signal sleep time times link unlink pipe fork wait kill select access
    intptr_t uintptr_t intmax_t uintmax_t ptrdiff_t size_t ssize_t off_t time_t
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
    INT8_MIN INT16_MIN INT32_MIN INT64_MIN INT8_MAX INT16_MAX INT32_MAX INT64_MAX
    UINT8_MAX UINT16_MAX UINT32_MAX UINT64_MAX SIZE_MAX PTRDIFF_MAX linux unix i386
"""
_OURS = "args fault show status done printed chain arena places"

RESERVED = frozenset(" ".join((_C_WORDS, _CPP_WORDS, _CUDA_WORDS, _LIBRARY, _OURS)).split())
_MATHS = frozenset(_LIBRARY.split())


def identifier(label: str) -> str:
    """Return a label as a C identifier: allowed characters only, never empty, never reserved.

    Not unique by itself. A leading underscore is dropped: those names belong to the compiler.

    >>> [identifier(label) for label in ("p.grad", "größe", "int", "2x", "")]
    ['p_grad', 'gr_e', 'int_', 'x2x', 'x']
    """
    text = re.sub(r"[^A-Za-z0-9]+", "_", label).strip("_")[:MAX_LENGTH]
    if not text or text[0].isdigit():
        text = "x" + text
    if text.lower().startswith("pe_"):
        text = "x_" + text
    return text + "_" if is_reserved(text) else text


def is_reserved(name: str) -> bool:
    """Whether a name is reserved: in C, C++, CUDA, the C library or the prelude."""
    stem = name[:-1] if name[-1:] in "fl" else name
    return name in RESERVED or stem in _MATHS or name.lower().startswith("pe_")


class Names:
    """An allocator of unique identifiers; `taken` says which others the text uses already."""

    def __init__(self, taken: Callable[[str], bool] = lambda name: False) -> None:
        self._taken = taken
        self._used: set[str] = set()

    def fresh(self, label: str) -> str:
        """Return an unused identifier like the label, and reserve it."""
        base = identifier(label)
        name, number = base, 1
        while name in self._used or self._taken(name) or is_reserved(name):
            number += 1
            name = f"{base.rstrip('_')}_{number}"
        self._used.add(name)
        return name

    def release(self, names: Iterable[str]) -> None:
        """Release names whose scope has ended, for reuse."""
        self._used.difference_update(names)
