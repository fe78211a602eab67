"""result 0: dtype int64 against float64."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, b):
    v1 = np.zeros(2)
    v5[i] = min[j](v1[j] * b[i, j])
    v1[i] = a[i] - b[1, i]
    return (v1,)
""",
    (
        ArgSpec("a", "int64", shape=(2,), seed=2),
        ArgSpec("b", "int64", shape=(2, 2), seed=2),
    ),
    reorders=False,
    rounds=True,
)
WAYS = Ways(
    open=True,
)
