"""argument 2: [4.75, 4.75] against [5.75, 5.75]."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(y, u, out):
    r, c = y.shape
    for g in range(2):
        t1 = np.zeros((r, c), dtype=np.float32)
        for a2 in range(r):
            t1[a2,] = u[a2]
        p16 = t1[1:]
        p16 += 1
        t1[:-1] -= p16
        out[g] = t1.max()
""",
    (
        ArgSpec("y", "float64", shape=(12, 5), seed=2),
        ArgSpec("u", "float64", shape=(12,), seed=1),
        ArgSpec("out", "float64", shape=(2,), seed=1),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    optimize=3,
    thresholds=36982580,
)
