"""the type of a choice whose test is proven."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, b):
    b[i, j] = sum[k in range(3)](b[j, i] if i < 0 else a[j, k])
""",
    (
        ArgSpec("a", "int64", shape=(3, 3), kind="wild", seed=1),
        ArgSpec("b", "float64", shape=(3, 3), seed=1),
    ),
    reorders=False,
    rounds=False,
)
