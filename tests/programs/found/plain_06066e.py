"""the imaginary parts of an argument are a view of it."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(z):
    return z.imag
""",
    (ArgSpec("z", "complex128", shape=(2, 2), seed=1),),
    reorders=False,
    rounds=False,
)
