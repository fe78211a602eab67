"""temporary: error CdZeroDivisionError CD0763 against none: error[CD0763]: integer divi."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, b, c, d, p, q):
    d[-3:-2:-2, ::-1] |= ((a % d[2, :]) * d[0:0, :][::-1])
    b[::-1] &= (b[::-1] ^ 3)
    return 0
""",
    (
        ArgSpec("a", "int64", shape=(1,), seed=2),
        ArgSpec("b", "int64", shape=(1,), seed=2),
        ArgSpec("c", "float64", shape=(1, 1), seed=1),
        ArgSpec("d", "uint16", shape=(3, 2), seed=1),
        ArgSpec("p", "int", kind="4"),
        ArgSpec("q", "float", kind="2.0"),
    ),
    reorders=True,
    rounds=True,
)
WAYS = Ways(
    checked=True,
)
