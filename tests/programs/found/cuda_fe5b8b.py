"""RecursionError: maximum recursion depth exceeded."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(b, d):
    v2[i] = min[j](d[i, j])

    def g3(u, v):
        u[0] = 1
    g3(d, b)
    return (v2,)
""",
    (
        ArgSpec("b", "float64", shape=(1, 1), seed=1),
        ArgSpec("d", "float64", shape=(5, 5), seed=1),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    c=False,
    cuda=True,
    plain=False,
    checked=True,
    stack_bytes=1048576,
    threads=7,
    pipeline="short",
    thresholds=1241,
    poison=True,
)
