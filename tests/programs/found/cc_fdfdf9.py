"""argument 0: [[0.0, 431176.90625, 431176.90625, 0.0], [0.0, 431176.90625, 431176.90625."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a):
    a[i, j] *= a[i, j]
    a[i, j] = sum[k](a[1, k])
    a[i, j] *= a[i, j]
    a[i, j] = a[i, j] * a[i, pad(j + 1)]
    a[i, 0] *= a[i, j] * a[i, j]
""",
    (ArgSpec("a", "float32", shape=(2, 4), seed=1),),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    profile="default",
    schedule=True,
)
