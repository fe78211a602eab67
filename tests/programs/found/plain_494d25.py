"""argument 0: [[-inf, nan], [-inf, inf], [-2.318278253839532, -0.22349713479569217], [i."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b, c):
    b /= np.fmax(c, 0)
""",
    (
        ArgSpec("b", "float64", shape=(6, 2), seed=1),
        ArgSpec("c", "float64", shape=(6, 2), kind="wild", seed=1),
    ),
    reorders=False,
    rounds=False,
)
