"""result 0: [0.0, 0.0] against [1.5, 2.75]."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(b, c):
    v1[i, j] = c[i, j]
    for t2 in range(1, 1, 1):
        v1[i, j] = b[i, j]
    v5[i] = v1[1, i]
    return (v5,)
""",
    (
        ArgSpec("b", "float64", shape=(2, 2), seed=1),
        ArgSpec("c", "float64", shape=(2, 2), seed=1),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    open=True,
)
