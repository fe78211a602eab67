"""CdInternalError: error[CD0901]: f0: storage comes first: best#19 has no storage yet, ."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, c, idx):
    v3 = np.zeros(idx[1])
    v3[i] = argmax[j](c[j, wrap(i)])
    a[i, j] -= v3[j]
""",
    (
        ArgSpec("a", "float64", shape=(1, 1), seed=1),
        ArgSpec("c", "float64", shape=(1, 2), seed=1),
        ArgSpec("idx", "int64", shape=(2,), kind="index:5", seed=2),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    passes=True,
    plain=False,
    stack_bytes=1048576,
)
