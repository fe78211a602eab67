"""a write through the imaginary parts was lost."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(z):
    v1 = z.imag
    v1 /= 4
""",
    (ArgSpec("z", "complex128", shape=(2, 2), seed=1),),
    reorders=False,
    rounds=False,
)
