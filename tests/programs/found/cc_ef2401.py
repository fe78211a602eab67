"""A parallel loop inside of another one hid what that wrote in its scratch array."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(x, y, u, v, out):
    for g in range(4 // 2, 4):
        t1 = np.zeros((9, 3), np.int32)
        for b3 in range(3):
            for a2 in range(9):
                t1[a2, b3] += v[b3] * y[a2, b3]
        out[g] = t1
        out[g] += t1[::-1]
    return out
""",
    (
        ArgSpec("x", "int32", shape=(4, 9, 3), layout="zero", seed=1893307114),
        ArgSpec("y", "int32", shape=(9, 3), seed=1915026860),
        ArgSpec("u", "int32", shape=(9,), seed=648184625),
        ArgSpec("v", "int32", shape=(3,), seed=156430161),
        ArgSpec("out", "int32", shape=(4, 9, 3), seed=354147937),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    profile="default",
    stack_bytes=0,
    schedule=True,
    threads=7,
    parallel_from=1,
    thresholds=1010551600,
    poison=True,
)
