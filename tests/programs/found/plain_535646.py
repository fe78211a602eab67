"""argument 1: [inf, nan] against [-inf, nan]."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, c):
    a[i, j] = min[k]((1 > 1) * c[k])
    c[i] /= a[i, i]
""",
    (
        ArgSpec("a", "float64", shape=(2, 2), seed=1),
        ArgSpec("c", "float64", shape=(2,), seed=1),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    optimize=3,
    stack_bytes=64,
)
