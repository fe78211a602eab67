"""error ValueError against none: negative dimensions are not allowed."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, b):
    if j == 0 and j == 2:
        a[i, j] += a[j, i] / b[i]
""",
    (
        ArgSpec("a", "float32", shape=(3, 3), seed=1),
        ArgSpec("b", "float64", shape=(3,), seed=1),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    passes=True,
    plain=False,
    optimize=3,
)
