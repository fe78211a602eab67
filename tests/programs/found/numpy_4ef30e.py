"""the usual fill of `pad` in a bool array."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b, d):
    d[i] = d[i] + b[pad(i - 1)]
""",
    (
        ArgSpec("b", "bool", shape=(3,), seed=1),
        ArgSpec("d", "float64", shape=(3,), seed=1),
    ),
    reorders=False,
    rounds=False,
)
