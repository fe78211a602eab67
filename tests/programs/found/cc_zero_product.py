"""a product with a zero, of whole numbers that are not negative, less something: gcc's -0.0."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(x, y):
    v1 = x * -0.0 + 0.0 - (x * 2)
    v2 = y * 0.0 - y
    v3 = 0.0 * y * 3.0 - x
    return (v1, v2, v3)
""",
    (
        ArgSpec("x", "bool", shape=(5,), seed=1),
        ArgSpec("y", "uint8", shape=(5,), kind="index:2", seed=3),
    ),
    reorders=False,
    rounds=False,
)
