"""results share memory with arguments: ((False, True, False, False), (False, False, Fal."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, b, c, d):
    v1 = b.reshape(-1)
    v4 = b
    v5 = v1[::-1]
    return (v4, v5)
""",
    (
        ArgSpec("a", "float64", seed=1),
        ArgSpec("b", "float64", shape=(2, 2), seed=1),
        ArgSpec("c", "float64", shape=(1, 1), seed=1),
        ArgSpec("d", "float64", shape=(1, 1), seed=1),
    ),
    reorders=True,
    rounds=True,
)
