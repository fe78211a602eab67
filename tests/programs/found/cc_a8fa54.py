"""error CdIndexError CD0601 against none: error[CD0601]: index 3 is out of range for ax."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, b, c, d):
    v1[i, j] = b[i, 1] + b[j, 1]

    def g3(u, v):
        for t in range(1):
            u, v = (v, u)
        return u
    v4 = g3(c, a)
    for t5 in range(len(v1)):
        if ~d[1] * v4[t5, 1] >= 1:
            break
""",
    (
        ArgSpec("a", "int32", shape=(3, 3), layout="sliced", seed=1),
        ArgSpec("b", "float64", shape=(4, 2), seed=1),
        ArgSpec("c", "int32", shape=(3, 3), seed=1),
        ArgSpec("d", "int64", shape=(2,), seed=1),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(passes=True, plain=False, checked=True, stack_bytes=0)
