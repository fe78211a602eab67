"""result 0: [-0.0] against [0.0]."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, b):
    g3 = lambda u, v: u - v * 0.5
    v4 = g3(b ^ b, a >= 1)
    return (v4,)
""",
    (
        ArgSpec("a", "float64", shape=(1,), seed=1),
        ArgSpec("b", "int64", shape=(1,), seed=2),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    passes=True, plain=False, profile="default", optimize=2, checked=True, stack_bytes=1048576
)
