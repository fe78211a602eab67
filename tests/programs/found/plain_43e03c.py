"""argument 2: [[0.0, nan], [-3.0, -inf]] against [[0.0, nan], [-3.0, inf]]."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, c, d):
    c *= a
    v1 = np.min(c, axis=0)
    d //= v1
""",
    (
        ArgSpec("a", "float64", shape=(1, 2), seed=1),
        ArgSpec("c", "float64", shape=(3, 2), seed=2),
        ArgSpec("d", "float64", shape=(2, 2), seed=1),
    ),
    reorders=False,
    rounds=False,
)
