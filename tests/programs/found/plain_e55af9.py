"""result 0: [[1.0]] against [[2.0]]."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, c):
    v2 = c ** 0
    v3 = v2.T
    if a[1, 1]:
        v2, v3 = (v3, v2)
    v3[:,] = 2
    return (v2,)
""",
    (
        ArgSpec("a", "float64", shape=(2, 2), seed=1),
        ArgSpec("c", "float64", shape=(1, 1), seed=1),
    ),
    reorders=False,
    rounds=False,
)
