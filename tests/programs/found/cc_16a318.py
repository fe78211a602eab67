"""CdInternalError: error[CD0901]: f0: nodes are declared: node result#18 is not declare."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(y, out):
    r, c = y.shape
    for g in range(1):
        t1 = np.zeros((r, c), np.uint8)

        def q18(p, q):
            if p[0, 0]:
                return p - q
            return q
        t19 = q18(t1, y)
        out[g] = t19
""",
    (
        ArgSpec("y", "int64", shape=(1, 2), seed=2),
        ArgSpec("out", "float64", shape=(1, 1, 2), seed=1),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    open=True,
)
