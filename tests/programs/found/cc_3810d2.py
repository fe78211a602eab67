"""ValueError: negative shift count."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(x, v, out):
    for g in range(1):
        t1 = 1 + x[g] - 1 + 0
        t7 = t1
        s8 = t1 @ v
        t1[:, 0] = s8
        out += t7.max(axis=1)
""",
    (
        ArgSpec("x", "float64", shape=(1, 2, 1), seed=1),
        ArgSpec("v", "float64", shape=(1,), seed=1),
        ArgSpec("out", "float64", shape=(1, 2), seed=1),
    ),
    reorders=True,
    rounds=False,
)
WAYS = Ways(
    schedule=True,
    thresholds=416991165,
)
