"""results share memory with arguments: ((False, False, False, False),) against ((False,."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b, c, d, idx):
    v1[i, j] = b[j, i]
    v2[i] = v1[i, 1]
    v3 = c[1,]
    for t4 in range(len(v2)):
        v2, v3 = (v3, v2)
    return (v3,)
""",
    (
        ArgSpec("b", "float64", shape=(2, 2), seed=1),
        ArgSpec("c", "float64", shape=(2, 2), seed=1),
        ArgSpec("d", "float64", shape=(1, 1), seed=1),
        ArgSpec("idx", "float64", shape=(1,), kind="index:2", seed=1),
    ),
    reorders=False,
    rounds=False,
)
