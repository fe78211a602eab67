"""CdInternalError: error[CD0901]: f0: nodes are declared: node p4_1#19 is not declared,."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(x, y):
    r, c = y.shape
    for g in range(x.shape[0]):
        t1 = np.empty((r, c))
        p4 = [t1, t1[-1] - 1]
        t1[-1] = p4[1]
        t7 = np.zeros_like(t1)
        for s8 in range(1):
            t1, t7 = (t7, t1)
""",
    (
        ArgSpec("x", "float64", shape=(2, 1, 1), seed=1),
        ArgSpec("y", "float64", shape=(1, 2), seed=1),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    open=True,
)
