"""argument 1: [[(-5.463407908487776-2.406284820386732j)], [(-3.1357015329761944+0.78526."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, b, c):
    b -= a[:, 13:14] * c
""",
    (
        ArgSpec("a", "complex128", shape=(17, 17), kind="wild", seed=1),
        ArgSpec("b", "complex128", shape=(17, 1), kind="wild", seed=1),
        ArgSpec("c", "complex128", shape=(1,), kind="wild", seed=2),
    ),
    reorders=True,
    rounds=True,
)
