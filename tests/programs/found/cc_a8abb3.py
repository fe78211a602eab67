"""result 0: [[3.25]] against [[3.5]]."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, c, d):
    v1[i, j] = c[1, i] + a[1, j]
    v1[:] = d[:, ::-1].sum()
    return (v1,)
""",
    (
        ArgSpec("a", "float64", shape=(2, 1), seed=1),
        ArgSpec("c", "float64", shape=(2, 1), seed=1),
        ArgSpec("d", "float64", shape=(4, 2), seed=1),
    ),
    reorders=True,
    rounds=False,
)
WAYS = Ways(
    optimize=3,
)
