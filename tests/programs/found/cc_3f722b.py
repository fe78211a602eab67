"""argument 0: [[4.0, 0.0], [6.0, 0.0]] against [[1.0, 0.0], [1.0, 0.0]]."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a):
    a *= a
    a //= a[:, ::-1].sum(axis=0)
""",
    (ArgSpec("a", "float64", shape=(2, 2), seed=2),),
    reorders=True,
    rounds=False,
)
