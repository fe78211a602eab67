"""result 0: [[1.0, -1.0], [-1.0, -1.0]] against [[-1.0, -1.0], [-1.0, -1.0]]."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, d):
    d //= a
    v3 = np.copysign(1, d)
    return (v3,)
""",
    (
        ArgSpec("a", "float64", shape=(1, 1), seed=2),
        ArgSpec("d", "float64", shape=(2, 2), kind="wild", seed=2052193988),
    ),
    reorders=False,
    rounds=True,
)
