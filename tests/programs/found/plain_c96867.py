"""the overlap of byte-swapped arguments."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, z):
    z[0] = 99
    a += 1
""",
    (
        ArgSpec("a", "float64", shape=(4,), layout="swapped", seed=1),
        ArgSpec("z", "float64", view=("a", "[1:]")),
    ),
    reorders=False,
    rounds=False,
)
