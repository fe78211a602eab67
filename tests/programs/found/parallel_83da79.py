"""argument 2: [[273540322164.375, 1.1224417280892212e+20, 1.118015379331002e+17, 1.3817."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, b, c):

    def g1(u, v):
        u = u * u - 0.5
        return u
    v2 = g1(b, 1)
    v2 += 1
    c[i, j] = prod[k](sum[l in range(7)](v2[j, j]) * a[k, k])
""",
    (
        ArgSpec("a", "int64", shape=(7, 7), seed=2),
        ArgSpec("b", "int64", shape=(7, 7), seed=1),
        ArgSpec("c", "float64", shape=(1, 7), seed=1),
    ),
    reorders=True,
    rounds=False,
)
WAYS = Ways(
    passes=True,
    plain=False,
    profile="default",
    optimize=1,
    stack_bytes=0,
    schedule=True,
    threads=2,
    parallel_from=0,
)
