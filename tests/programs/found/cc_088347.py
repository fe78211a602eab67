"""the larger of two zeros."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a):
    a[i] = max[j](a[j] * j)
""",
    (ArgSpec("a", "float64", shape=(2,), seed=1),),
    reorders=False,
    rounds=False,
)
