"""A name of another type after nested loops that have iterations."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, idx):
    s7 = a[1, 1, 1]
    for t6 in range(1):
        for t8 in range(1):
            s7 = idx[t8]
    return (np.sinh(s7),)
""",
    (
        ArgSpec("a", "float64", shape=(2, 2, 2), seed=1),
        ArgSpec("idx", "uint8", shape=(1,), kind="index:3", seed=1),
    ),
    reorders=False,
    rounds=True,
)
