"""results share memory with arguments: ((False, False, False, False),) against ((False,."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, b, c, z):
    v1 = np.broadcast_to(z, (1, *z.shape))
    return (v1,)
""",
    (
        ArgSpec("a", "float64", shape=(1, 1), seed=1),
        ArgSpec("b", "float64", shape=(1, 1), seed=1),
        ArgSpec("c", "float64", shape=(1, 1), seed=1),
        ArgSpec("z", "float64", shape=(1, 1)),
    ),
    reorders=False,
    rounds=False,
)
