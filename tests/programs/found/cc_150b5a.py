"""argument 0: [0.0, 0.0] against [-1.9857070583384484e-06, 6.122633067207062e-09]."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b):
    b *= np.conj(b)
""",
    (ArgSpec("b", "complex64", shape=(2,), kind="wild", seed=1),),
    reorders=True,
    rounds=True,
)
