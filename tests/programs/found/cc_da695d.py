"""AssertionError: Expected code to be unreachable, but got: None."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, b):
    v1[i, j] = a[i, i] * b[j]
    v1[:,] = np.cumsum(b, axis=-1)
    v1 = v1[None,]
    if v1[0, 0, 0]:
        pass
    else:
        for t2 in range(3, 1, -1):
            continue
""",
    (
        ArgSpec("a", "float64", shape=(1, 1), seed=1),
        ArgSpec("b", "bool", shape=(1,), seed=1),
    ),
    reorders=False,
    rounds=False,
)
